#include "stretto/ops/layer_norm.h"

#include "stretto/ops/add.h"
#include "stretto/ops/cast.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/layer_norm_grad.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/rsqrt.h"
#include "stretto/ops/square.h"
#include "stretto/ops/sub.h"
#include "stretto/ops/sum.h"

namespace stretto {

Tensor layer_norm(Tensor x, Tensor gain, Tensor bias, Dim over, double eps) {
  Builder& b = builder_of("layer_norm", {x, gain, bias});
  return b.emit(layer_norm_op, {x, gain, bias}, NormAttrs{rules::dim_of("layer_norm", x, over), eps});
}

constinit const Op layer_norm_op{
    .name = "layer_norm",
    .infer =
        [](const OpCall& c) {
          const DimId over = c.attrs<NormAttrs>().over;
          rules::float_unary(c);
          const Type& x = c.in(0);
          for (int i : {1, 2}) rules::vector_along(c, i, over);
          const Type rows{wide(x.dtype), without(x.dims, {over})};
          return std::vector<Type>{x, rows, rows};
        },
    .vjp =
        [](const Vjp& v) {
          const Tensor dx = layer_norm_grad(v.in[0], v.in[1], v.out[1], v.out[2], v.grad[0], v.attrs<NormAttrs>().over);
          return std::vector{dx, cast(v.builder.result(dx, 1), v.in[1].dtype()),
                             cast(v.builder.result(dx, 2), v.in[2].dtype())};
        },
    .spread = [](const OpCall& c) { return Spread{.serial = {c.attrs<NormAttrs>().over}}; },
    .cost = rules::streaming<8>,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 2}, m{"m", 7}, one{"one", 1}, wide{"wide", 40};
          e.add(layer_norm(e.real({a, m}), e.real({m}), e.real({m}), m));
          e.add(layer_norm(e.real({b, a, wide}), e.real({wide}), e.real({wide}), wide));
          e.add(layer_norm(e.real({m, a}), e.real({m}), e.real({m}), m, 1e-3));
          e.add(layer_norm(e.real({m}), e.real({m}), e.real({m}), m));
          e.add(layer_norm(e.real({a, one}), e.real({one}), e.real({one}), one, 0.1));
          const Dim p = Dim{"p", 5}.padded(8);
          e.add(layer_norm(e.real({a, p}), e.real({p}), e.real({p}), p));
        },
    .decompose =
        [](const OpCall& c, std::span<const Tensor> in) {
          const NormAttrs& a = c.attrs<NormAttrs>();
          const double n = c.graph.dim(a.over).valid();
          const Tensor mean = sum_over(in[0], {a.over}) * (1 / n), centred = in[0] - mean;
          const Tensor rstd = rsqrt(sum_over(square(centred), {a.over}) * (1 / n) + a.eps);
          return std::vector{centred * rstd * in[1] + in[2], mean, rstd};
        },
    .in_place = rules::first_in_place,
};

}  // namespace stretto
