#include "stretto/ops/attention.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor starts(Tensor ids, const Dim& along) {
  return builder_of("starts", {ids}).emit(starts_op, {ids}, StartsAttrs{rules::dim_of("starts", ids, along)});
}

constinit const Op starts_op{
    .name = "starts",
    .infer =
        [](const OpCall& c) {
          if (c.in(0).dtype != i32)
            throw Error("starts", "{} is {}", c.describe(0), name_of(c.in(0).dtype))
                .hint("numbers of documents are i32");
          return rules::same_as_first(c);
        },
    .spread = [](const OpCall& c) { return Spread{.serial = {c.attrs<StartsAttrs>().along}}; },
    .cost = rules::streaming<1>,
    .examples =
        [](Examples& e) {
          const Dim b{"b", 2}, s{"s", 6};
          e.add(starts(e.ids({b, s}, 2), s));
          e.add(starts(e.ids({s, b}, 2), s));
        },
    .no_gradient = true,
};

}  // namespace stretto
