#include "stretto/ops/slots.h"

#include "stretto/ops/ops.h"
#include "stretto/ops/rules.h"

namespace stretto {

Slots expert_slots(Tensor gates, const Dim& token, const Dim& expert, const Dim& capacity, i64 k) {
  const DimId t = rules::dim_of("expert_slots", gates, token), e = rules::dim_of("expert_slots", gates, expert);
  Builder& b = *gates.builder;
  const Tensor chosen = b.emit(slots_op, {gates}, SlotsAttrs{t, e, b.intern(capacity), k});
  return {chosen, b.result(chosen, 1)};
}

constinit const Op slots_op{
    .name = "slots",
    .infer =
        [](const OpCall& c) {
          rules::float_unary(c);
          const SlotsAttrs& a = c.attrs<SlotsAttrs>();
          const i64 experts = c.graph.dim(a.expert).valid();
          if (a.k < 1 || a.k > experts)
            throw Error("expert_slots", "{} of {} experts are to be chosen (of {})", a.k, experts, c.describe(0))
                .hint("use 1 to {}", experts);
          Type taken = c.in(0);
          taken.dims.push_back(a.capacity);
          return std::vector<Type>{c.in(0), taken};
        },
    .spread =
        [](const OpCall& c) {
          const SlotsAttrs& a = c.attrs<SlotsAttrs>();
          return Spread{.serial = {a.token, a.expert, a.capacity}};
        },
    .cost = rules::streaming<4>,
    .examples =
        [](Examples& e) {
          const Dim b{"b", 2}, s{"s", 6}, x{"x", 4}, room{"room", 3}, all{"all", 6};
          const auto one = [&](Dims dims, const Dim& capacity, i64 k) {
            const Slots r = expert_slots(e.real(std::move(dims)), s, x, capacity, k);
            e.add({r.chosen, r.taken});
          };
          one({b, s, x}, room, 2);
          one({x, s}, room, 1);
          one({s, b, x}, all, 3);
        },
    .no_gradient = true,  // a choice: gradients flow through the gates' values
};

}  // namespace stretto
