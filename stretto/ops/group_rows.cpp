#include "stretto/ops/group_rows.h"

#include <algorithm>
#include <limits>

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor group_rows(Tensor which, const GroupRowsAttrs& attrs) {
  return builder_of("group_rows", {which}).emit(group_rows_op, {which}, attrs);
}

GroupedRows group_rows(Tensor which, const Dim& batch, const Dim& experts, const Dim& rows) {
  Builder& b = builder_of("group_rows", {which});
  const DimId of = rules::dim_of("group_rows", which, batch);
  const DimId all = b.intern(rows), from = b.intern({"from_x", 1}), to = b.intern({"to_x", 1});
  const Tensor place = group_rows(which, GroupRowsAttrs{of, of, all, from, to, experts.valid()});
  return {all, place, b.result(place, 1), b.result(place, 2), b.result(place, 3), b.result(place, 4)};
}

constinit const Op group_rows_op{
    .name = "group_rows",
    .infer =
        [](const OpCall& c) {
          const GroupRowsAttrs& a = c.attrs<GroupRowsAttrs>();
          if (c.in(0).dtype != i32)
            throw Error("group_rows", "{} is {}, and experts are named by i32", c.describe(0), name_of(c.in(0).dtype))
                .hint("use top_k(gates, experts, choice)");
          if (c.graph.size(a.rows) > std::numeric_limits<std::int32_t>::max())
            throw Error("group_rows", "{} rows are more than i32 counts", c.graph.size(a.rows))
                .hint("use a smaller microbatch");
          const i64 members = c.graph.size(a.from);
          STRETTO_ASSERT(c.graph.size(a.batch) * members == c.graph.size(a.whole) && c.graph.size(a.to) == members &&
                             a.experts % members == 0,
                         "one block of the batch and of the experts per member");
          DimSet tokens = c.in(0).dims;
          std::replace(tokens.begin(), tokens.end(), a.whole, a.batch);
          return std::vector<Type>{
              {i32, tokens}, {i32, {a.rows}}, {i32, {a.from, a.to}}, {i32, {a.to, a.from}}, {f32, {a.batch}}};
        },
    .spread = rules::nothing,
    .cost = rules::reading<2>,
    .examples =
        [](Examples& e) {
          const Dim b{"b", 2}, w{"w", 4}, s{"s", 3}, j{"j", 2}, x{"x", 4}, rows{"rows", 12}, few{"few", 5};
          const auto add = [&](const GroupedRows& g) { e.add({g.place, g.expert, g.there, g.back, g.lost}); };
          add(group_rows(e.ids({b, s, j}, 4), b, x, rows));
          add(group_rows(e.ids({s, b, j}, 4), b, x, few));
          const auto id = [&](const Dim& d) { return e.builder.intern(d); };
          const Tensor of_two = group_rows(
              e.ids({w, s, j}, 4), GroupRowsAttrs{id(b), id(w), id(rows), id({"from", 2}), id({"to", 2}), x.size});
          e.add({of_two, e.builder.result(of_two, 1), e.builder.result(of_two, 2), e.builder.result(of_two, 4)});
        },
    .regroups = Regroups::plan,
    .no_gradient = true,  // a choice: gradients flow through what is taken there
};

}  // namespace stretto
