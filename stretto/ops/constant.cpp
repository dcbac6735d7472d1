#include "stretto/ops/constant.h"

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor constant(Builder& b, double value, DType dtype) {
  return b.emit(constant_op, {}, ConstantAttrs{.value = value, .dtype = dtype});
}

constinit const Op constant_op{
    .name = "constant",
    .infer =
        [](const OpCall& c) {
          return std::vector<Type>{{c.attrs<ConstantAttrs>().dtype, {}}};
        },
    .spread = rules::nothing,
    .cost = [](const OpCall&) { return Cost{}; },
    .examples = [](Examples& e) { e.add(constant(e.builder, 1.5, e.dtype)); },
    .leaf = Leaf::constant,
    .no_gradient = true,
};

}  // namespace stretto
