#include "stretto/ops/max.h"

#include "stretto/ops/cast.h"
#include "stretto/ops/compare.h"
#include "stretto/ops/div.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/sum.h"

namespace stretto {

Tensor max(Tensor x, const Dims& over) { return max_over(x, rules::dims_of("max", x, over)); }

Tensor max_over(Tensor x, DimSet over) {
  if (over.empty()) return x;
  return builder_of("max", {x}).emit(max_op, {x}, MaxAttrs{.over = std::move(over)});
}

constinit const Op max_op{
    .name = "max",
    .infer =
        [](const OpCall& c) {
          return std::vector<Type>{{c.in(0).dtype, without(c.in(0).dims, c.attrs<MaxAttrs>().over)}};
        },
    .vjp =
        [](const Vjp& v) {
          const Tensor largest = cast(equal(v.in[0], v.out[0]), v.in[0].dtype());
          return std::vector{largest * (v.grad[0] / sum_over(largest, v.attrs<MaxAttrs>().over))};
        },
    .spread =
        [](const OpCall& c) {
          Spread s;
          for (DimId d : c.attrs<MaxAttrs>().over) s.reduce.push_back({d, Reduce::max});
          return s;
        },
    .cost = rules::reading<1>,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 4}, one{"one", 1}, v = Dim{"v", 5}.padded(8);
          e.add(max(e.real({a, b}), a));
          e.add(max(e.real({a, b}), b));
          e.add(max(e.real({a, b, one}), {a, b, one}));
          e.add(max(e.real({a, v}), v));
        },
};

}  // namespace stretto
