#include "stretto/ops/all_to_all.h"

#include <algorithm>

#include "stretto/ir/collective.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor all_to_all(Tensor x, DimId gathered, DimId whole, DimId scattered, DimId block, std::vector<std::string> axes) {
  return builder_of("all_to_all", {x})
      .emit(all_to_all_op, {x}, AllToAllAttrs{std::move(axes), gathered, whole, scattered, block});
}

constinit const Op all_to_all_op{
    .name = "all_to_all",
    .infer =
        [](const OpCall& c) {
          const AllToAllAttrs& a = c.attrs<AllToAllAttrs>();
          Type t = c.in(0);
          STRETTO_ASSERT(contains(t.dims, a.gathered) && contains(t.dims, a.scattered), "moves dims of its operand");
          std::replace(t.dims.begin(), t.dims.end(), a.gathered, a.whole);
          std::replace(t.dims.begin(), t.dims.end(), a.scattered, a.block);
          STRETTO_ASSERT(c.elements(t) == c.elements(c.in(0)), "as many elements as before");
          return std::vector<Type>{t};
        },
    .spread = rules::nothing,
    .cost = rules::free,
    .examples =
        [](Examples& e) {
          const Dim seq{"seq", 3}, whole{"whole", 6}, heads{"heads", 4}, some{"some", 2};
          const auto id = [&](const Dim& d) { return e.builder.intern(d); };
          e.add(all_to_all(e.real({seq, heads}), id(seq), id(whole), id(heads), id(some), {"context"}));
        },
    .costly = Costly::yes,
    .collective_kind = CollectiveKind::exchange,
    .collective =
        [](const OpCall& c, const View& in, const View& out) {
          const AllToAllAttrs& a = c.attrs<AllToAllAttrs>();
          CollectiveShape s{.axes = a.axes};
          for (DimId d : in.dims) {
            const DimId there = d == a.gathered ? a.whole : d == a.scattered ? a.block : d;
            add_box_dim(s, d == a.scattered ? out.size(a.block) : in.size(d), in.stride(d), out.stride(there));
          }
          s.in_step = out.size(a.block) * in.stride(a.scattered);
          s.out_step = in.size(a.gathered) * out.stride(a.whole);
          return s;
        },
    .no_gradient = true,
};

}  // namespace stretto
