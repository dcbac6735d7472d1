#include "stretto/ops/iota.h"

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor iota(Builder& b, const Dim& dim) { return b.emit(iota_op, {}, IotaAttrs{.dim = b.intern(dim)}); }

constinit const Op iota_op{
    .name = "iota",
    .infer =
        [](const OpCall& c) {
          return std::vector<Type>{{i32, {c.attrs<IotaAttrs>().dim}}};
        },
    .spread = rules::nothing,
    .cost = rules::streaming<0>,
    .examples =
        [](Examples& e) {
          e.add(iota(e.builder, {"a", 5}));
        },
    .no_gradient = true,
};

}  // namespace stretto
