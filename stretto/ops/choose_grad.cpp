#include "stretto/ops/choose_grad.h"

#include "stretto/ops/choose.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor choose_grad(Tensor x, Tensor g, Tensor which, DimId expert, const DimSet& out) {
  return builder_of("choose_grad", {x, g, which}).emit(choose_grad_op, {x, g, which}, ChooseGradAttrs{expert, out});
}

constinit const Op choose_grad_op{
    .name = "choose_grad",
    .infer =
        [](const OpCall& c) {
          choosing::check_types("choose_grad", c);
          return std::vector<Type>{{wide(c.in(0).dtype), c.attrs<ChooseGradAttrs>().out}};
        },
    .spread =
        [](const OpCall& c) {
          return choosing::spread(c, c.attrs<ChooseGradAttrs>().expert, {0, 1});
        },
    .cost = [](const OpCall& c) { return choosing::cost(c, c.attrs<ChooseGradAttrs>().expert); },
    .examples =
        [](Examples& e) {
          const Dim b{"b", 2}, s{"s", 3}, x{"x", 4}, j{"j", 2}, m{"m", 5}, f{"f", 6}, p = Dim{"p", 5}.padded(8);
          const auto one = [&](Tensor a, Tensor g, Tensor which, const Dims& out) {
            DimSet dims;
            for (const Dim& d : out) dims.push_back(e.builder.intern(d));
            e.add(choose_grad(a, g, which, e.builder.intern(x), dims));
          };
          one(e.real({b, s, m}), e.real({b, s, j, f}), e.ids({b, s, j}, 4), {x, m, f});
          one(e.real({b, s, j, f}), e.real({b, s, m}), e.ids({b, s, j}, 4), {x, f, m});
          one(e.real({s, m}), e.real({s, f}), e.ids({s}, 4), {f, x, m});
          one(e.real({s, m}), e.real({s, f}), e.ids({s}, 4), {x, f, m});
          one(e.real({s, m}), e.real({s, p}), e.ids({s}, 4), {x, m, p});
        },
    .scratch = [](const OpCall& c) { return choosing::scratch(c, c.attrs<ChooseGradAttrs>().expert, c.out()); },
    .accumulates = true,
    .no_gradient = true,
};

}  // namespace stretto
