#include "stretto/ops/input.h"

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor input(Builder& b, std::string name, DType dtype, const Dims& dims, bool per_step) {
  return b.emit(input_op, {},
                InputAttrs{.name = std::move(name), .dtype = dtype, .dims = b.intern(dims), .per_step = per_step});
}

constinit const Op input_op{
    .name = "input",
    .infer =
        [](const OpCall& c) {
          return std::vector<Type>{{c.attrs<InputAttrs>().dtype, c.attrs<InputAttrs>().dims}};
        },
    .spread = rules::nothing,
    .cost = [](const OpCall&) { return Cost{}; },
    .examples =
        [](Examples& e) {
          e.add(e.real({{"a", 3}}));
        },
    .leaf = Leaf::argument,
    .no_gradient = true,
};

Tensor Examples::real_wide(Dims dims, double lo, double hi) {
  const DType narrow = std::exchange(dtype, wide(dtype));
  const Tensor x = real(std::move(dims), lo, hi);
  dtype = narrow;
  return x;
}

Tensor Examples::real(Dims dims, double lo, double hi) {
  Tensor t = input(builder, fmt::format("x{}", sources.size()), dtype, dims);
  sources.push_back({t.value, lo, hi, 0});
  return t;
}

Tensor Examples::ids(Dims dims, i64 below) {
  Tensor t = input(builder, fmt::format("i{}", sources.size()), i32, dims);
  sources.push_back({t.value, 0, 0, below});
  return t;
}

}  // namespace stretto
