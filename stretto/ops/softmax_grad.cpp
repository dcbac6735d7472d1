#include "stretto/ops/softmax_grad.h"

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/sub.h"
#include "stretto/ops/sum.h"

namespace stretto {

Tensor softmax_grad(Tensor y, Tensor g, DimId over) {
  return builder_of("softmax_grad", {y, g}).emit(softmax_grad_op, {y, g}, SoftmaxGradAttrs{over});
}

constinit const Op softmax_grad_op{
    .name = "softmax_grad",
    .infer = rules::same_as_first,
    .spread = [](const OpCall& c) { return Spread{.serial = {c.attrs<SoftmaxGradAttrs>().over}, .linear = {1}}; },
    .cost = rules::streaming<4>,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, m{"m", 40};
          e.add(softmax_grad(e.real({a, m}), e.real({a, m}), e.builder.intern(m)));
          e.add(softmax_grad(e.real({m, a}), e.real({m, a}), e.builder.intern(m)));
        },
    .decompose =
        [](const OpCall& c, std::span<const Tensor> in) {
          return std::vector{in[0] * (in[1] - sum_over(in[0] * in[1], {c.attrs<SoftmaxGradAttrs>().over}))};
        },
    .in_place = {InPlace{1, 0}, InPlace{0, 0}},
    .no_gradient = true,
};

}  // namespace stretto
