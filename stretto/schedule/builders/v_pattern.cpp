#include "stretto/schedule/builders/v_pattern.h"

#include <algorithm>
#include <deque>

#include "stretto/base/error.h"

namespace stretto::builders {

namespace {

constexpr int period = 6;
constexpr int empty = -1;

// The state after a slot: chunks' activations alive, and weight gradients owed. A weight gradient is paid in the first
// slot that nothing else takes.
struct State {
  int live = 0, owed = 0;
  void step(int code) {
    if (code == empty) {
      if (owed > 0) --owed, --live;
    } else if (code % 4 < 2) {
      ++live;
    } else {
      ++owed;
    }
  }
};

// One actor's slots: code = 4 x microbatch + kind, or empty.
struct Lane {
  std::vector<int> slots;
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
  // The first free slot from `from` on where `code` can stand, instead of in slot `at`, with no more than `cap` alive
  // at any time; `at` when there is none. From `at` on nothing gets worse: that slot becomes free for the weight
  // gradient that loses its own. And if a slot is too early because of memory in slot z, then so is every slot up to z.
  int place(int code, int from, int at, int cap) {
    know(at);
    for (int slot = from; slot < at; ++slot) {
      if (slots[slot] != empty) continue;
      State s = before(slot);
      s.step(code);
      int z = slot;
      while (s.live <= cap && ++z < at) s.step(slots[z]);
      if (z == at) {
        known = slot;
        slots[slot] = code;
        return slot;
      }
      slot = z;
    }
    slots[at] = code;
    return at;
  }
};

int steady_peak(const Pattern& pattern) {
  const int actors = std::ssize(pattern), repeats = 2 * actors + 2;
  int peak = 0;
  for (const auto& start : pattern) {
    std::vector<int> slots(*std::max_element(start.begin(), start.end()) + period * repeats, empty);
    for (int m = 0; m < repeats; ++m) {
      for (int kind = 0; kind < 4; ++kind) slots[start[kind] + period * m] = 4 * m + kind;
    }
    State s;
    for (const int code : slots) s.step(code), peak = std::max(peak, s.live);
  }
  return peak;
}

}  // namespace

Schedule squeeze(const Request& r, const Pattern& pattern) {
  Schedule s = v_shaped(r);
  const int p = r.actors, m = r.microbatches, cap = steady_peak(pattern);
  int last = 0;
  for (const auto& start : pattern) last = std::max(last, start[3]);
  const int slots = last + period * (m - 1) + 1;

  std::vector<Lane> lanes(p);
  std::vector<std::array<int, period>> kinds(p);  // which kind takes a slot, by residue
  for (int a = 0; a < p; ++a) {
    lanes[a].slots.assign(slots, empty);
    lanes[a].after.resize(slots);
    kinds[a].fill(empty);
    for (int kind = 0; kind < 4; ++kind) {
      int& taken = kinds[a][pattern[a][kind] % period];
      STRETTO_ASSERT(taken == empty, "a pattern repeats without collision");
      taken = kind;
    }
  }

  // In the pattern's own order every action moves to the first free slot after what it needs.
  std::vector<int> slot_of(4 * p * m);
  const auto slot = [&](int a, int kind, int k) -> int& { return slot_of[(a * 4 + kind) * m + k]; };
  for (int t = 0; t < slots; ++t) {
    for (int a = 0; a < p; ++a) {
      const int kind = kinds[a][t % period];
      if (kind == empty) continue;
      const int since = t - pattern[a][kind];
      if (since < 0 || since / period >= m) continue;
      const int k = since / period, neighbour = kind % 2 == 0 ? a - 1 : a + 1;
      int after = -1;
      if (neighbour >= 0 && neighbour < p) after = slot(neighbour, kind, k);
      if (kind > 0) after = std::max(after, slot(a, kind - 1, k));
      if (k > 0) after = std::max(after, slot(a, kind, k - 1));
      slot(a, kind, k) = lanes[a].place(4 * k + kind, after + 1, t, cap);
    }
  }

  for (int a = 0; a < p; ++a) {
    Row& row = s.rows[a];
    row.reserve(6 * m);
    const int stage[4] = {a, 2 * p - 1 - a, 2 * p - 1 - a, a};
    std::deque<int> owed;
    const auto pay = [&] {
      row.W(stage[owed.front() % 4], owed.front() / 4);
      owed.pop_front();
    };
    for (const int code : lanes[a].slots) {
      if (code == empty) {
        if (!owed.empty()) pay();
        continue;
      }
      row.add(code % 4 < 2 ? Phase::F : Phase::I, stage[code % 4], code / 4);
      if (code % 4 >= 2) owed.push_back(code);
    }
    while (!owed.empty()) pay();
  }
  return s;
}

}  // namespace stretto::builders
