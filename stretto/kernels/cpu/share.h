// A kernel's work, shared among the threads of its rank.
//
//   const int parts = parts_worth(args, 1e-3);                        // of work that takes a thread a millisecond
//   share(args, parts, [&](const Args& mine, int part) { ... });      // with scratch of its own; side by side
#pragma once
#include <algorithm>
#include <utility>

#include "stretto/kernels/team.h"

namespace stretto {

// Of things in a row, those that are one part's: whole units of them.
struct PartRange {
  i64 first = 0, end = 0;
  bool has(i64 i) const { return first <= i && i < end; }
  bool empty() const { return first == end; }
};
inline PartRange range_of_part(i64 whole, i64 unit, i64 part, i64 parts) {
  const i64 units = (whole + unit - 1) / unit;
  return {std::min(whole, units * part / parts * unit), std::min(whole, units * (part + 1) / parts * unit)};
}

inline int parts_worth(const Args& args, double seconds) { return args.team ? args.team->worth(seconds) : 1; }

// Only the first part lets messages move on. A fault is that of the first part that finds one.
template <class F>
void share(const Args& args, int parts, const F& f) {
  if (parts == 1) return f(args, 0);
  args.team->run(parts, [&](int part) {
    Args mine = args;
    mine.team = nullptr;
    if (part > 0) {
      mine.scratch += part * args.scratch_each;
      mine.poll = nullptr;
      mine.fault = &args.team->fault(part);
    }
    f(mine, part);
  });
  for (int part = 1; part < parts; ++part)
    if (auto found = std::exchange(args.team->fault(part), std::nullopt); found && args.fault && !*args.fault)
      *args.fault = found;
}

}  // namespace stretto
