#include "stretto/ops/sum.h"

#include "stretto/ops/cast.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor sum(Tensor x, const Dims& over) { return sum_over(x, rules::dims_of("sum", x, over)); }

Tensor sum_over(Tensor x, DimSet over) {
  if (over.empty()) return x;
  return builder_of("sum", {x}).emit(sum_op, {x}, SumAttrs{.over = std::move(over)});
}

Tensor sum_all(Tensor x) { return sum_over(x, x.type().dims); }

constinit const Op sum_op{
    .name = "sum",
    .infer =
        [](const OpCall& c) {
          const SumAttrs& a = c.attrs<SumAttrs>();
          const DType t = c.in(0).dtype;
          return std::vector<Type>{{a.result.empty() ? t : wide(t), without(c.in(0).dims, a.over)}};
        },
    .vjp = [](const Vjp& v) { return std::vector{cast(v.grad[0], v.in[0].dtype())}; },
    .spread =
        [](const OpCall& c) {
          Spread s{.linear = {0}};
          for (DimId d : c.attrs<SumAttrs>().over) s.reduce.push_back({d, Reduce::sum});
          return s;
        },
    .cost = rules::reading<1>,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 4}, one{"one", 1};
          e.add(sum(e.real({a, b}), a));
          e.add(sum(e.real({a, b}), b));
          e.add(sum(e.real({a, b, one}), {a, one}));
          e.add(sum_all(e.real({a, b})));
          e.add(sum(e.real({a, Dim{"v", 5}.padded(8)}), Dim{"v", 5}.padded(8)));
        },
    .accumulates = true,
    .widened =
        [](const Attrs& a) {
          SumAttrs wide = a.as<SumAttrs>();
          wide.result = {f32};
          return Attrs(wide);
        },
};

}  // namespace stretto
