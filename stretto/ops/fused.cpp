#include "stretto/ops/fused.h"

#include "stretto/ops/add.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/ops.h"

namespace stretto {

const Op* op_named(std::string_view name) {
  for (const Op* op : all_ops())
    if (op->name == name) return op;
  return nullptr;
}

constinit const Op fused_op{
    .name = "fused",
    .infer =
        [](const OpCall& c) {
          const FusedAttrs& a = c.attrs<FusedAttrs>();
          std::vector<Type> types;
          for (i64 r : a.results) types.push_back({a.dtypes[r], a.space});
          return types;
        },
    .spread = rules::nothing,
    .cost = [](const OpCall& c) { return c.streaming(double(c.attrs<FusedAttrs>().steps.size())); },
    .examples =
        [](Examples& e) {  // (x + y) * y
          const Dim a{"a", 3}, b{"b", 40};
          const Tensor x = e.real({a, b}), y = e.real({b});
          e.add(e.builder.emit(fused_op, {x, y},
                               FusedAttrs{.steps = {"add", "mul"},
                                          .counts = {2, 2},
                                          .args = {0, 1, 2, 1},
                                          .values = {0, 0},
                                          .dtypes = {wide(e.dtype), e.dtype},
                                          .results = {1},
                                          .space = e.builder.intern(Dims{a, b})}));
        },
    .group = true,
    .no_gradient = true,  // groups are made after differentiation
};

}  // namespace stretto
