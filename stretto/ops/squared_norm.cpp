#include "stretto/ops/squared_norm.h"

#include "stretto/ops/cast.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor squared_norm(Tensor x) { return builder_of("squared_norm", {x}).emit(squared_norm_op, {x}); }

constinit const Op squared_norm_op{
    .name = "squared_norm",
    .infer =
        [](const OpCall& c) {
          rules::float_unary(c);
          return std::vector<Type>{{f64, {}}};
        },
    .vjp = [](const Vjp& v) { return std::vector{v.in[0] * cast(2.0 * v.grad[0], v.in[0].type().dtype)}; },
    .spread =
        [](const OpCall& c) {
          Spread s;
          for (DimId d : c.in(0).dims) s.reduce.push_back({d, Reduce::sum});
          return s;
        },
    .cost =
        [](const OpCall& c) {
          Cost cost = c.streaming(0);
          cost.flops = 2.0 * c.elements(c.in(0));
          return cost;
        },
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 40}, one{"one", 1};
          e.add(squared_norm(e.real({a, b})));
          e.add(squared_norm(e.real({})));
          e.add(squared_norm(e.real({one})));
          e.add(squared_norm(e.real({a, Dim{"v", 5}.padded(8)})));
        },
};

}  // namespace stretto
