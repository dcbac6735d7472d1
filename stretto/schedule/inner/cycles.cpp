#include "stretto/schedule/inner/cycles.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace stretto {

namespace {

class Play {
 public:
  explicit Play(const ActionIndex& ix)
      : ix_(ix), next_(ix.actors()), waits_(ix.actors()), waiters_(ix.size()), link_(ix.actors()) {
    needs_.resize(ix.size());
    for (std::uint32_t i = 0; i < ix.size(); ++i) {
      const ActionNumber from = ix.producer(i);
      if (from && ix.actor[*from] != ix.actor[i] && !ix.misplaced(i) && !ix.misplaced(*from)) needs_[i] = from;
    }
    done_.assign(ix.size(), 0);
    for (const ActorId a : next_.ids()) next_[a] = ix.begin(a), ready_.push_back(a);
  }

  std::vector<Cycle> find() {
    std::vector<Cycle> cycles;
    while (true) {
      while (!ready_.empty()) {
        const ActorId a = ready_.back();
        ready_.pop_back();
        advance(a);
      }
      const std::size_t before = cycles.size();
      circles(cycles);
      if (cycles.size() == before) return cycles;
      for (std::size_t c = before; c < cycles.size(); ++c) {
        for (const CycleHop& hop : cycles[c]) grant(hop);
      }
    }
  }

 private:
  void advance(ActorId a) {
    const std::uint32_t end = ix_.end(a);
    for (std::uint32_t& i = next_[a]; i < end;) {
      std::uint32_t stop = i;
      for (; stop < end && ix_.item[stop] == ix_.item[i]; ++stop) {
        const ActionNumber need = needs_[stop];
        if (need && !done_[*need]) {
          waits_[a] = stop;
          link_[a] = std::exchange(waiters_[*need], a);
          return;
        }
      }
      for (; i < stop; ++i) {
        done_[i] = 1;
        for (Waiter w = std::exchange(waiters_[i], {}); w; w = link_[*w]) waits_[*w] = {}, ready_.push_back(*w);
      }
    }
  }

  // Every waiting actor waits for one other that is waiting too (what it needs is still to come): following them ends
  // in a circle.
  void circles(std::vector<Cycle>& cycles) const {
    IdVector<ActorId, std::optional<ActorId>> seen(next_.size());
    for (const ActorId start : next_.ids()) {
      ActorId a = start;
      while (waits_[a] && !seen[a]) {
        seen[a] = start;
        a = source(a);
      }
      if (!waits_[a] || seen[a] != start) continue;
      Cycle cycle;
      const ActorId first = a;
      do {
        cycle.push_back({*waits_[a], *needs_[*waits_[a]]});
        a = source(a);
      } while (a != first);
      const auto smallest =
          std::min_element(cycle.begin(), cycle.end(), [](auto& x, auto& y) { return x.waits < y.waits; });
      std::rotate(cycle.begin(), smallest, cycle.end());
      cycles.push_back(std::move(cycle));
    }
  }

  // The actor that makes what a waiting actor needs.
  ActorId source(ActorId actor) const { return ix_.actor[*needs_[*waits_[actor]]]; }

  void grant(const CycleHop& hop) {
    const ActorId a = ix_.actor[hop.waits];
    Waiter* at = &waiters_[hop.needs];
    while (**at != a) at = &link_[**at];
    *at = link_[a];
    needs_[hop.waits] = {};
    waits_[a] = {};
    ready_.push_back(a);
  }

  const ActionIndex& ix_;
  using Waiter = std::optional<ActorId>;

  std::vector<ActionNumber> needs_;
  std::vector<std::uint8_t> done_;
  IdVector<ActorId, std::uint32_t> next_;  // where it stands
  IdVector<ActorId, ActionNumber> waits_;  // the action whose input it waits for
  std::vector<Waiter> waiters_;            // per action: the first actor waiting for it
  IdVector<ActorId, Waiter> link_;         // the next one waiting for the same
  std::vector<ActorId> ready_;
};

}  // namespace

std::vector<Cycle> find_cycles(const ActionIndex& ix) { return Play(ix).find(); }

}  // namespace stretto
