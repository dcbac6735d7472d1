#include "stretto/schedule/cycles.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace stretto {

namespace {

class Play {
 public:
  explicit Play(const ActionIndex& ix)
      : ix_(ix),
        next_(ix.row_begin.begin(), ix.row_begin.end() - 1),
        waits_(next_.size()),
        waiters_(ix.size()),
        link_(next_.size()) {
    needs_.resize(ix.size());
    for (std::uint32_t i = 0; i < ix.size(); ++i) {
      const ActionNumber from = ix.producer(i);
      if (from && ix.actor[*from] != ix.actor[i] && !ix.misplaced(i) && !ix.misplaced(*from)) needs_[i] = from;
    }
    done_.assign(ix.size(), 0);
    for (std::uint32_t a = 0; a < next_.size(); ++a) ready_.push_back(a);
  }

  std::vector<Cycle> find() {
    std::vector<Cycle> cycles;
    while (true) {
      while (!ready_.empty()) {
        const std::uint32_t a = ready_.back();
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
  void advance(std::uint32_t a) {
    const std::uint32_t end = ix_.row_begin[a + 1];
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
    std::vector<std::optional<std::uint32_t>> seen(next_.size());
    for (std::uint32_t start = 0; start < next_.size(); ++start) {
      std::uint32_t a = start;
      while (waits_[a] && !seen[a]) {
        seen[a] = start;
        a = source(a);
      }
      if (!waits_[a] || seen[a] != start) continue;
      Cycle cycle;
      const std::uint32_t first = a;
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
  std::uint32_t source(std::uint32_t actor) const { return ix_.actor[*needs_[*waits_[actor]]]; }

  void grant(const CycleHop& hop) {
    const std::uint32_t a = ix_.actor[hop.waits];
    Waiter* at = &waiters_[hop.needs];
    while (**at != a) at = &link_[**at];
    *at = link_[a];
    needs_[hop.waits] = {};
    waits_[a] = {};
    ready_.push_back(a);
  }

  const ActionIndex& ix_;
  using Waiter = std::optional<std::uint32_t>;  // an actor

  std::vector<ActionNumber> needs_;
  std::vector<std::uint8_t> done_;
  std::vector<std::uint32_t> next_;     // per actor: where it stands
  std::vector<ActionNumber> waits_;     // per actor: the action whose input it waits for
  std::vector<Waiter> waiters_, link_;  // per action the first actor waiting for it, per actor the next one
  std::vector<std::uint32_t> ready_;
};

}  // namespace

std::vector<Cycle> find_cycles(const ActionIndex& ix) { return Play(ix).find(); }

}  // namespace stretto
