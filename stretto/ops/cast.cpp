#include "stretto/ops/cast.h"

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor cast(Tensor x, DType to) {
  Builder& b = builder_of("cast", {x});
  return x.dtype() == to ? x : b.emit(cast_op, {x}, CastAttrs{.to = to});
}

constinit const Op cast_op{
    .name = "cast",
    .infer =
        [](const OpCall& c) {
          const DType to = c.attrs<CastAttrs>().to;
          for (DType t : {c.in(0).dtype, to})
            if (t == f16)
              throw Error("cast", "{} cannot be cast from {} to {}", c.describe(0), name_of(c.in(0).dtype), name_of(to))
                  .hint("f16 exists in files only; compute in bf16, f32 or f64");
          return std::vector<Type>{{to, c.in(0).dims}};
        },
    .vjp =
        [](const Vjp& v) {
          return std::vector{is_float(v.out[0].dtype()) ? cast(v.grad[0], v.in[0].dtype()) : Tensor{}};
        },
    .spread =
        [](const OpCall& c) {  // to and from bf16 it stands where something is rounded: sums over ranks are made before
          const DType to = c.attrs<CastAttrs>().to;
          return is_float(to) && to != bf16 && c.in(0).dtype != bf16 ? rules::linear(c) : rules::zero_of_zero<0>(c);
        },
    .cost = rules::streaming<1>,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 4};
          e.add(cast(cast(e.real({a, b}), f64), e.dtype));
          e.add(cast(e.ids({a, b}, 9), e.dtype));
          e.add(cast(e.real({a, b}, -5, 5), i32));
        },
    .pointwise = true,
    .retypes = true,
};

}  // namespace stretto
