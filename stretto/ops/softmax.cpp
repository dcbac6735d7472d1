#include "stretto/ops/softmax.h"

#include "stretto/ops/div.h"
#include "stretto/ops/exp.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/max.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/softmax_grad.h"
#include "stretto/ops/sub.h"
#include "stretto/ops/sum.h"

namespace stretto {

Tensor softmax(Tensor x, Dim over) {
  return builder_of("softmax", {x}).emit(softmax_op, {x}, SoftmaxAttrs{rules::dim_of("softmax", x, over)});
}

constinit const Op softmax_op{
    .name = "softmax",
    .infer = rules::float_unary,
    .vjp = [](const Vjp& v) { return std::vector{softmax_grad(v.out[0], v.grad[0], v.attrs<SoftmaxAttrs>().over)}; },
    .spread = [](const OpCall& c) { return Spread{.serial = {c.attrs<SoftmaxAttrs>().over}}; },
    .cost = rules::streaming<20>,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 2}, m{"m", 7}, wide{"wide", 40}, one{"one", 1};
          e.add(softmax(e.real({a, m}, -3, 3), m));
          e.add(softmax(e.real({m, a}), m));
          e.add(softmax(e.real({b, wide, a}), wide));
          e.add(softmax(e.real({b, wide}), wide));
          e.add(softmax(e.real({m}), m));
          e.add(softmax(e.real({a, one}), one));
          e.add(softmax(e.real({a, Dim{"p", 5}.padded(8)}), Dim{"p", 5}.padded(8)));
        },
    .decompose =
        [](const OpCall& c, std::span<const Tensor> in) {
          const DimSet over{c.attrs<SoftmaxAttrs>().over};
          const Tensor e = exp(in[0] - max_over(in[0], over));
          return std::vector{e / sum_over(e, over)};
        },
    .in_place = rules::first_in_place,
};

}  // namespace stretto
