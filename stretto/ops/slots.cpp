#include "stretto/ops/slots.h"

#include <algorithm>
#include <limits>

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor expert_slots(Tensor which, const Dim& token, const Dim& choice, const Dim& experts, const Dim& slot) {
  const DimId t = rules::dim_of("expert_slots", which, token), j = rules::dim_of("expert_slots", which, choice);
  return builder_of("expert_slots", {which}).emit(slots_op, {which}, SlotsAttrs{t, j, experts.valid(), slot.valid()});
}

constinit const Op slots_op{
    .name = "slots",
    .infer =
        [](const OpCall& c) {
          if (c.in(0).dtype != i32)
            throw Error("expert_slots", "{} is {}, and experts are named by i32", c.describe(0), name_of(c.in(0).dtype))
                .hint("use top_k(gates, experts, choice)");
          const SlotsAttrs& a = c.attrs<SlotsAttrs>();
          if (a.slots > std::numeric_limits<std::int32_t>::max() / std::max<i64>(a.experts, 1))
            throw Error("expert_slots", "{} slots of {} experts are more than i32 counts", a.slots, a.experts)
                .hint("use fewer slots or shorter sequences");
          return rules::same_as_first(c);
        },
    .spread =
        [](const OpCall& c) {
          const SlotsAttrs& a = c.attrs<SlotsAttrs>();
          return Spread{.serial = {a.token, a.choice}};
        },
    .cost = rules::streaming<4>,
    .examples =
        [](Examples& e) {
          const Dim b{"b", 2}, s{"s", 6}, x{"x", 4}, two{"two", 2}, one{"one", 1}, room{"room", 2}, all{"all", 6};
          e.add(expert_slots(e.ids({b, s, two}, 4), s, two, x, room));
          e.add(expert_slots(e.ids({one, s}, 4), s, one, x, room));
          e.add(expert_slots(e.ids({s, b, two}, 4), s, two, x, all));
        },
    .no_gradient = true,  // a choice: gradients flow through what is picked
};

}  // namespace stretto
