#include "stretto/ops/cross_entropy_grad.h"

#include "stretto/ops/constant.h"
#include "stretto/ops/cross_entropy.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/labels.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor cross_entropy_grad(Tensor logits, Tensor labels, Tensor g, DimId over, i64 ignore) {
  return builder_of("cross_entropy_grad", {logits, labels, g})
      .emit(cross_entropy_grad_op, {logits, labels, g}, CrossEntropyGradAttrs{over, ignore});
}

constinit const Op cross_entropy_grad_op{
    .name = "cross_entropy_grad",
    .infer = rules::same_as_first,
    .spread = [](const OpCall& c) { return Spread{.serial = {c.attrs<CrossEntropyGradAttrs>().over}, .linear = {2}}; },
    .cost = rules::streaming<20>,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, v{"v", 40};
          const Tensor g = constant(e.builder, 0.5, f64);
          e.add(cross_entropy_grad(e.real({a, v}), e.ids({a}, 40), g, e.builder.intern(v), 3));
          e.add(cross_entropy_grad(e.real({v, a}), e.ids({a}, 40), g, e.builder.intern(v), -100));
        },
    .decompose =
        [](const OpCall& c, std::span<const Tensor> in) {
          const CrossEntropyGradAttrs& a = c.attrs<CrossEntropyGradAttrs>();
          return std::vector{decomposed_cross_entropy(in[0], in[1], in[2], a.over, a.ignore).dlogits};
        },
    .in_place = rules::first_in_place,
    .no_gradient = true,
    .out_of_range =
        [](const OpCall& c, i64 label, i64 classes) {
          const CrossEntropyGradAttrs& a = c.attrs<CrossEntropyGradAttrs>();
          return no_class(label, c.graph.dim(a.over).name, classes, a.ignore);
        },
};

}  // namespace stretto
