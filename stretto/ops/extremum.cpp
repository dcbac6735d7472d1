#include "stretto/ops/extremum.h"

#include <algorithm>

#include "stretto/ops/compare.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/where.h"

namespace stretto {

Tensor minimum(Tensor a, Tensor b) { return builder_of("minimum", {a, b}).emit(minimum_op, {a, b}); }
Tensor minimum(Tensor a, double b) { return minimum(a, rules::number("minimum", b, a)); }
Tensor maximum(Tensor a, Tensor b) { return builder_of("maximum", {a, b}).emit(maximum_op, {a, b}); }
Tensor maximum(Tensor a, double b) { return maximum(a, rules::number("maximum", b, a)); }

constinit const Op minimum_op{
    .name = "minimum",
    .infer = rules::pointwise,
    .vjp =
        [](const Vjp& v) {
          return std::vector{v.wanted[0] ? where(less_equal(v.in[0], v.in[1]), v.grad[0], 0) : Tensor{},
                             v.wanted[1] ? where(greater(v.in[0], v.in[1]), v.grad[0], 0) : Tensor{}};
        },
    .spread = rules::nothing,
    .cost = rules::streaming<1>,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 4};
          e.add(minimum(e.real({a, b}), e.real({a, b})));
          e.add(minimum(e.real({b}), e.real({a, b})));
          e.add(minimum(e.real({a}), 0.25));
        },
    .in_place = {InPlace{0, 0}, InPlace{1, 0}},
    .pointwise = true,
    .value = [](const double* x) { return std::min(x[0], x[1]); },
};

constinit const Op maximum_op{
    .name = "maximum",
    .infer = rules::pointwise,
    .vjp =
        [](const Vjp& v) {
          return std::vector{v.wanted[0] ? where(greater_equal(v.in[0], v.in[1]), v.grad[0], 0) : Tensor{},
                             v.wanted[1] ? where(less(v.in[0], v.in[1]), v.grad[0], 0) : Tensor{}};
        },
    .spread = rules::nothing,
    .cost = rules::streaming<1>,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 4};
          e.add(maximum(e.real({a, b}), e.real({a, b})));
          e.add(maximum(e.real({b}), e.real({a, b})));
          e.add(maximum(e.real({a}), 0.25));
        },
    .in_place = {InPlace{0, 0}, InPlace{1, 0}},
    .pointwise = true,
    .value = [](const double* x) { return std::max(x[0], x[1]); },
};

}  // namespace stretto
