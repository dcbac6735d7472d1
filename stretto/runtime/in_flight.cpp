#include "stretto/runtime/in_flight.h"

namespace stretto {

void InFlight::reserve(std::size_t collectives, std::size_t tickets_each) {
  flights_.assign(collectives, {});
  for (Flight& f : flights_) f.tickets.reserve(tickets_each);
  under_way_.clear();
  under_way_.reserve(collectives);
}

void InFlight::start(CollectiveId c, std::optional<RecordId> record) {
  flights_[c].tickets.clear();
  flights_[c].record = record;
  under_way_.push_back(c);
}

bool InFlight::progress(Flight& f) {
  bool complete = true;
  for (Ticket& t : f.tickets) {
    if (!t.complete) t.complete = t.at.group->progress(t.at.member, t.number);
    complete = complete && t.complete;
  }
  return complete;
}

}  // namespace stretto
