#include "stretto/ops/top_k.h"

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor top_k(Tensor x, const Dim& over, const Dim& choice) {
  Builder& b = builder_of("top_k", {x});
  return b.emit(top_k_op, {x}, TopKAttrs{rules::dim_of("top_k", x, over), b.intern(choice)});
}

constinit const Op top_k_op{
    .name = "top_k",
    .infer =
        [](const OpCall& c) {
          rules::float_unary(c);
          const TopKAttrs& a = c.attrs<TopKAttrs>();
          const i64 k = c.graph.size(a.choice), of = c.graph.dim(a.over).valid();
          if (k < 1 || k > of)
            throw Error("top_k", "{} of {} are to be chosen (of {})", k, of, c.describe(0)).hint("use 1 to {}", of);
          DimSet dims = without(c.in(0).dims, {a.over});
          if (contains(dims, a.choice))
            throw Error("top_k", "{} has dim '{}' already", c.describe(0), c.graph.dim(a.choice).name)
                .hint("give the chosen a dim of their own");
          dims.push_back(a.choice);
          return std::vector<Type>{{i32, dims}};
        },
    .spread =
        [](const OpCall& c) {
          const TopKAttrs& a = c.attrs<TopKAttrs>();
          return Spread{.serial = {a.over, a.choice}};
        },
    .cost = rules::reading<4>,
    .examples =
        [](Examples& e) {
          const Dim b{"b", 2}, s{"s", 6}, x{"x", 4}, two{"two", 2}, one{"one", 1}, p = Dim{"p", 5}.padded(8);
          e.add(top_k(e.real({b, s, x}), x, two));
          e.add(top_k(e.real({x, s}), x, one));
          e.add(top_k(e.real({s, p}), p, two));
        },
    .no_gradient = true,  // a choice: gradients flow through what is picked
};

}  // namespace stretto
