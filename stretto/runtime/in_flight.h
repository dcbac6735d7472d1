// Collectives between their Start and their Await.
//
//   flights.start(collective, record);
//   flights.add(collective, {membership, ticket});
//   flights.help_along(ended);                    // now and then: a share of what is under way
//   flights.await(collective, wait);
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "stretto/program/program.h"
#include "stretto/runtime/groups.h"
#include "stretto/runtime/records.h"

namespace stretto {

class InFlight {
 public:
  struct Ticket {
    Groups::Membership at;
    u64 number = 0;
    bool complete = false;
  };

  void reserve(std::size_t collectives, std::size_t tickets_each);  // so that nothing is allocated later
  // Begins a collective; its tickets are added next.
  void start(CollectiveId, std::optional<RecordId>);
  void add(CollectiveId c, Ticket t) { flights_[c].tickets.push_back(t); }
  // Calls `wait(ticket)` for each that is not complete; returns the record to be ended, if it has not been.
  template <class Wait>
  std::optional<RecordId> await(CollectiveId c, Wait wait) {
    Flight& f = flights_[c];
    for (Ticket& t : f.tickets)
      if (!t.complete) wait(t), t.complete = true;
    std::erase(under_way_, c);
    return std::exchange(f.record, std::nullopt);
  }
  // Calls `ended(record)` for those that have ended.
  template <class Ended>
  void help_along(Ended ended) {
    for (const CollectiveId c : under_way_)
      if (progress(flights_[c]) && flights_[c].record) ended(*std::exchange(flights_[c].record, std::nullopt));
  }

 private:
  struct Flight {
    std::vector<Ticket> tickets;
    std::optional<RecordId> record;  // while its end is not known
  };
  static bool progress(Flight&);  // is it complete?

  IdVector<CollectiveId, Flight> flights_;
  std::vector<CollectiveId> under_way_;
};

}  // namespace stretto
