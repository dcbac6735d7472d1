#include "stretto/ops/param.h"

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor param(Builder& b, std::string name, DType dtype, const Dims& dims) {
  return b.emit(param_op, {}, ParamAttrs{.name = std::move(name), .dtype = dtype, .dims = b.intern(dims)});
}

constinit const Op param_op{
    .name = "param",
    .infer =
        [](const OpCall& c) {
          return std::vector<Type>{{c.attrs<ParamAttrs>().dtype, c.attrs<ParamAttrs>().dims}};
        },
    .spread = rules::nothing,
    .cost = [](const OpCall&) { return Cost{}; },
    .examples =
        [](Examples& e) {
          e.add(param(e.builder, "w", e.dtype, {{"a", 3}}));
        },
    .leaf = Leaf::param,
    .no_gradient = true,
};

}  // namespace stretto
