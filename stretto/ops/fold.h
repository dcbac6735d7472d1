// unfold(x, seq, {place, tap}, {2, 1}): element 2 place + tap of `seq`, for every place and tap: windows, which may
// overlap; with one dim every second element, with steps that are sizes a dim cut into several. A view: nothing is
// copied. fold(y, {place, tap}, seq, {2, 1}) is the other way round: what meets at an element of `seq` is added up.
#pragma once
#include <vector>

#include "stretto/ir/op.h"

namespace stretto {

struct FoldAttrs {
  DimId whole;
  DimSet parts;
  std::vector<i64> steps;  // along `whole`, one per part
  i64 start = 0;
  static constexpr void fields(auto& s, auto f) {
    f("whole", s.whole);
    f("parts", s.parts);
    f("steps", s.steps);
    f("start", s.start);
  }
};
Tensor unfold(Tensor x, const Dim& whole, const Dims& parts, std::vector<i64> steps, i64 start = 0);
Tensor fold(Tensor y, const Dims& parts, const Dim& whole, std::vector<i64> steps, i64 start = 0);

// The product of some dims, first to last, as that of others: {3 8} -> {4 6}.
Tensor refold(Tensor x, const Dims& from, const Dims& to);

}  // namespace stretto
