#include "stretto/ops/rms_norm.h"

#include "stretto/ops/add.h"
#include "stretto/ops/cast.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/rms_norm_grad.h"
#include "stretto/ops/rsqrt.h"
#include "stretto/ops/square.h"
#include "stretto/ops/sum.h"

namespace stretto {

Tensor rms_norm(Tensor x, Tensor gain, Dim over, double eps) {
  Builder& b = builder_of("rms_norm", {x, gain});
  return b.emit(rms_norm_op, {x, gain}, NormAttrs{rules::dim_of("rms_norm", x, over), eps});
}

constinit const Op rms_norm_op{
    .name = "rms_norm",
    .infer =
        [](const OpCall& c) {
          const DimId over = c.attrs<NormAttrs>().over;
          rules::float_unary(c);
          const Type& x = c.in(0);
          rules::vector_along(c, 1, over);
          const Type rows{wide(x.dtype), without(x.dims, {over})};
          return std::vector<Type>{x, rows};
        },
    .vjp =
        [](const Vjp& v) {
          const Tensor dx = rms_norm_grad(v.in[0], v.in[1], v.out[1], v.grad[0], v.attrs<NormAttrs>().over);
          return std::vector{dx, cast(v.builder.result(dx, 1), v.in[1].dtype())};
        },
    .spread = [](const OpCall& c) { return Spread{.serial = {c.attrs<NormAttrs>().over}}; },
    .cost = rules::streaming<5>,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 2}, m{"m", 7}, one{"one", 1}, wide{"wide", 40};
          e.add(rms_norm(e.real({a, m}), e.real({m}), m));
          e.add(rms_norm(e.real({b, a, wide}), e.real({wide}), wide));
          e.add(rms_norm(e.real({m, a}), e.real({m}), m, 1e-3));
          e.add(rms_norm(e.real({m}), e.real({m}), m));
          e.add(rms_norm(e.real({a, one}), e.real({one}), one, 0.1));
          const Dim p = Dim{"p", 5}.padded(8);
          e.add(rms_norm(e.real({a, p}), e.real({p}), p));
        },
    .decompose =
        [](const OpCall& c, std::span<const Tensor> in) {
          const NormAttrs& a = c.attrs<NormAttrs>();
          const double n = c.graph.dim(a.over).valid();
          const Tensor rstd = rsqrt(sum_over(square(in[0]), {a.over}) * (1 / n) + a.eps);
          return std::vector{in[0] * rstd * in[1], rstd};
        },
    .in_place = rules::first_in_place,
};

}  // namespace stretto
