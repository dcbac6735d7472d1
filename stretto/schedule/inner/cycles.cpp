#include "stretto/schedule/inner/cycles.h"

#include <algorithm>
#include <optional>

#include "stretto/schedule/in_order.h"

namespace stretto {

namespace {

class Play {
 public:
  explicit Play(const ActionIndex& ix) : ix_(ix), order_(ix.actors(), ix.size()), done_(ix.size()), next_(ix.actors()) {
    needs_.resize(ix.size());
    for (std::uint32_t i = 0; i < ix.size(); ++i) {
      const ActionNumber from = ix.producer(i);
      if (from && ix.actor[*from] != ix.actor[i] && !ix.misplaced(i) && !ix.misplaced(*from)) needs_[i] = from;
    }
    for (const ActorId a : next_.ids()) next_[a] = ix.begin(a);
  }

  std::vector<Cycle> find() {
    std::vector<Cycle> cycles;
    while (true) {
      order_.run([&](ActorId a) { return advance(a); });
      const std::size_t before = cycles.size();
      order_.circles([&](ActorId a) { return ix_.actor[*order_.waits(a)]; },
                     [&](const std::vector<ActorId>& actors) { cycles.push_back(cycle_of(actors)); });
      if (cycles.size() == before) return cycles;
      for (std::size_t c = before; c < cycles.size(); ++c)
        for (const CycleHop& hop : cycles[c]) grant(hop);
    }
  }

 private:
  // The action whose result is missing.
  std::optional<std::uint32_t> advance(ActorId a) {
    const std::uint32_t end = ix_.end(a);
    for (std::uint32_t& i = next_[a]; i < end;) {
      const std::uint32_t stop = end_of_item(i, end);
      if (const auto waits = waiting(i, stop)) return *needs_[*waits];
      for (; i < stop; ++i) done_[i] = 1, order_.happened(i);
    }
    return std::nullopt;
  }
  std::uint32_t end_of_item(std::uint32_t i, std::uint32_t end) const {
    std::uint32_t stop = i;
    while (stop < end && ix_.item[stop] == ix_.item[i]) ++stop;
    return stop;
  }
  // The first of these actions that cannot start.
  std::optional<std::uint32_t> waiting(std::uint32_t from, std::uint32_t to) const {
    for (; from < to; ++from)
      if (needs_[from] && !done_[*needs_[from]]) return from;
    return std::nullopt;
  }

  Cycle cycle_of(const std::vector<ActorId>& actors) const {
    Cycle cycle;
    for (const ActorId a : actors) {
      const std::uint32_t waits = *waiting(next_[a], ix_.end(a));
      cycle.push_back({waits, *needs_[waits]});
    }
    std::ranges::rotate(cycle, std::ranges::min_element(cycle, {}, &CycleHop::waits));
    return cycle;
  }
  void grant(const CycleHop& hop) {
    needs_[hop.waits] = {};
    order_.release(ix_.actor[hop.waits]);
  }

  const ActionIndex& ix_;
  InOrder<std::uint32_t> order_;  // of actions
  std::vector<ActionNumber> needs_;
  std::vector<std::uint8_t> done_;
  IdVector<ActorId, std::uint32_t> next_;  // where it stands
};

}  // namespace

std::vector<Cycle> find_cycles(const ActionIndex& ix) { return Play(ix).find(); }

}  // namespace stretto
