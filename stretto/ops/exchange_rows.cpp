#include "stretto/ops/exchange_rows.h"

#include <algorithm>

#include "stretto/ir/collective.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor exchange_rows(Tensor x, Tensor counts, DimId sent, DimId came, std::vector<std::string> axes) {
  return builder_of("exchange_rows", {x, counts})
      .emit(exchange_rows_op, {x, counts}, ExchangeRowsAttrs{std::move(axes), sent, came});
}

constinit const Op exchange_rows_op{
    .name = "exchange_rows",
    .infer =
        [](const OpCall& c) {
          const ExchangeRowsAttrs& a = c.attrs<ExchangeRowsAttrs>();
          Type t = c.in(0);
          STRETTO_ASSERT(contains(t.dims, a.sent) && c.in(1).dtype == i32, "moves rows of its operand, by counts");
          std::replace(t.dims.begin(), t.dims.end(), a.sent, a.came);
          return std::vector<Type>{t};
        },
    .spread = rules::nothing,
    .cost = rules::free,
    .examples =
        [](Examples& e) {
          const Dim sent{"sent", 6}, came{"came", 9}, m{"m", 4}, from{"from", 2}, to{"to", 2};
          const auto id = [&](const Dim& d) { return e.builder.intern(d); };
          e.add(exchange_rows(e.real({sent, m}), e.ids({from, to}, 3), id(sent), id(came), {"expert"}));
        },
    .costly = Costly::yes,
    .collective_kind = CollectiveKind::rows,
    .collective =
        [](const OpCall& c, const View& in, const View& out) {
          const ExchangeRowsAttrs& a = c.attrs<ExchangeRowsAttrs>();
          CollectiveShape s{.axes = a.axes};
          CollectiveShape::Rows rows{.in = in.size(a.sent), .out = out.size(a.came)};
          s.in_step = in.stride(a.sent);
          s.out_step = out.stride(a.came);
          add_box_dim(s, std::max(rows.in, rows.out), s.in_step, s.out_step);
          for (DimId d : in.dims) {
            if (d == a.sent) continue;
            add_box_dim(s, in.size(d), in.stride(d), out.stride(d));
            rows.elements *= in.size(d);
          }
          s.rows = rows;
          return s;
        },
    .no_gradient = true,
};

}  // namespace stretto
