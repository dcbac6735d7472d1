#include "stretto/ops/where.h"

#include "stretto/ops/compare.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor where(Tensor condition, Tensor a, Tensor b) {
  return builder_of("where", {condition, a, b}).emit(where_op, {condition, a, b});
}
Tensor where(Tensor condition, Tensor a, double b) { return where(condition, a, rules::number("where", b, a)); }
Tensor where(Tensor condition, double a, Tensor b) { return where(condition, rules::number("where", a, b), b); }

constinit const Op where_op{
    .name = "where",
    .infer =
        [](const OpCall& c) {
          if (c.in(0).dtype != i32)
            throw Error("where", "the condition {} is {}", c.describe(0), name_of(c.in(0).dtype))
                .hint("make it with a comparison: greater(x, 0)");
          if (c.in(1).dtype != c.in(2).dtype)
            throw Error("where", "{} is {} and {} is {}", c.describe(1), name_of(c.in(1).dtype), c.describe(2),
                        name_of(c.in(2).dtype))
                .hint("cast one of them: cast(x, {})", name_of(c.in(1).dtype));
          return std::vector<Type>{{c.in(1).dtype, rules::widest_dims(c)}};
        },
    .vjp =
        [](const Vjp& v) {
          return std::vector{Tensor{}, v.wanted[1] ? where(v.in[0], v.grad[0], 0) : Tensor{},
                             v.wanted[2] ? where(v.in[0], 0, v.grad[0]) : Tensor{}};
        },
    .spread = rules::nothing,
    .cost = rules::streaming<1>,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 4};
          e.add(where(e.ids({a, b}, 2), e.real({a, b}), e.real({a, b})));
          e.add(where(e.ids({a, b}, 2), e.real({b}), -1));
          const Tensor x = e.real({a, b});
          e.add(where(greater(x, 0), x, x * 0.1));
        },
    .in_place = {InPlace{1, 0}, InPlace{2, 0}},
    .pointwise = true,
    .value = [](const double* x) { return x[0] != 0 ? x[1] : x[2]; },
};

}  // namespace stretto
