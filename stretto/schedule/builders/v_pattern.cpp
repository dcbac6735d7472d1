#include "stretto/schedule/builders/v_pattern.h"

#include <algorithm>
#include <array>
#include <deque>
#include <optional>

#include "stretto/base/error.h"

namespace stretto::builders {

namespace {

constexpr int period = 6;

struct Work {
  int microbatch, kind;  // the kind is a position in the pattern
  bool forward() const { return kind < 2; }
};
using Slot = std::optional<Work>;

// The state after a slot: chunks' activations alive, and weight gradients owed. A weight gradient is paid in the first
// slot that nothing else takes.
struct State {
  int live = 0, owed = 0;
  void step(const Slot& slot) {
    if (!slot) {
      if (owed > 0) --owed, --live;
    } else if (slot->forward()) {
      ++live;
    } else {
      ++owed;
    }
  }
};

// One actor's slots.
struct SlotRow {
  std::vector<Slot> slots;
  std::vector<State> after;  // valid below `known`
  int known = 0;

  State before(int slot) const { return slot > 0 ? after[slot - 1] : State{}; }
  void know(int until) {
    for (; known < until; ++known) {
      State s = before(known);
      s.step(slots[known]);
      after[known] = s;
    }
  }
  // The first free slot from `from` on where `work` can stand, instead of in slot `at`, with no more than `cap` alive
  // at any time; `at` when there is none. From `at` on nothing gets worse: that slot becomes free for the weight
  // gradient that loses its own. And if a slot is too early because of memory in slot z, then so is every slot up to z.
  int place(Work work, int from, int at, int cap) {
    know(at);
    for (int slot = from; slot < at; ++slot) {
      if (slots[slot]) continue;
      State s = before(slot);
      s.step(work);
      int z = slot;
      while (s.live <= cap && ++z < at) s.step(slots[z]);
      if (z == at) {
        known = slot;
        slots[slot] = work;
        return slot;
      }
      slot = z;
    }
    slots[at] = work;
    return at;
  }
};

int steady_peak(const Pattern& pattern) {
  const int actors = std::ssize(pattern), repeats = 2 * actors + 2;
  int peak = 0;
  for (const auto& start : pattern) {
    std::vector<Slot> slots(*std::max_element(start.begin(), start.end()) + period * repeats);
    for (int m = 0; m < repeats; ++m)
      for (int kind = 0; kind < 4; ++kind) slots[start[kind] + period * m] = Work{m, kind};
    State s;
    for (const Slot& slot : slots) s.step(slot), peak = std::max(peak, s.live);
  }
  return peak;
}

// Which kind takes a slot, by residue.
std::array<std::optional<int>, period> kinds_of(const Pattern::value_type& start) {
  std::array<std::optional<int>, period> kinds;
  for (int kind = 0; kind < 4; ++kind) {
    std::optional<int>& taken = kinds[start[kind] % period];
    STRETTO_ASSERT(!taken, "a pattern repeats without collision");
    taken = kind;
  }
  return kinds;
}

// In the pattern's own order every action moves to the first free slot after what it needs.
std::vector<SlotRow> squeezed(const Pattern& pattern, int m) {
  const int p = std::ssize(pattern), cap = steady_peak(pattern);
  int last = 0;
  for (const auto& start : pattern) last = std::max(last, start[3]);
  const int slots = last + period * (m - 1) + 1;
  std::vector<SlotRow> rows(p, {.slots = std::vector<Slot>(slots), .after = std::vector<State>(slots)});
  std::vector<std::array<std::optional<int>, period>> kinds;
  for (const auto& start : pattern) kinds.push_back(kinds_of(start));
  std::vector<int> slot_of(4 * p * m);
  const auto slot = [&](int a, int kind, int k) -> int& { return slot_of[(a * 4 + kind) * m + k]; };
  for (int t = 0; t < slots; ++t)
    for (int a = 0; a < p; ++a) {
      if (!kinds[a][t % period]) continue;
      const int kind = *kinds[a][t % period], since = t - pattern[a][kind];
      if (since < 0 || since / period >= m) continue;
      const int k = since / period, neighbour = kind % 2 == 0 ? a - 1 : a + 1;
      int from = 0;
      if (neighbour >= 0 && neighbour < p) from = slot(neighbour, kind, k) + 1;
      if (kind > 0) from = std::max(from, slot(a, kind - 1, k) + 1);
      if (k > 0) from = std::max(from, slot(a, kind, k - 1) + 1);
      slot(a, kind, k) = rows[a].place({k, kind}, from, t, cap);
    }
  return rows;
}

}  // namespace

Schedule squeeze(const Request& r, const Pattern& pattern) {
  Schedule s = v_shaped(r);
  const int p = r.actors;
  const std::vector<SlotRow> rows = squeezed(pattern, r.microbatches);
  for (int a = 0; a < p; ++a) {
    Row& row = s.rows[a];
    row.reserve(6 * r.microbatches);
    const int stage[4] = {a, 2 * p - 1 - a, 2 * p - 1 - a, a};
    std::deque<Work> owed;
    const auto pay = [&] {
      row.W(stage[owed.front().kind], owed.front().microbatch);
      owed.pop_front();
    };
    for (const Slot& slot : rows[a].slots) {
      if (!slot) {
        if (!owed.empty()) pay();
        continue;
      }
      row.add(slot->forward() ? Phase::F : Phase::I, stage[slot->kind], slot->microbatch);
      if (!slot->forward()) owed.push_back(*slot);
    }
    while (!owed.empty()) pay();
  }
  return s;
}

}  // namespace stretto::builders
