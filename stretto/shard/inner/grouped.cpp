#include "stretto/shard/inner/grouped.h"

#include <algorithm>

#include "stretto/base/text.h"
#include "stretto/ops/dispatch.h"
#include "stretto/ops/group_rows.h"
#include "stretto/ops/ops.h"

namespace stretto::grouped {
namespace {

// The axes that rows go over: those of the dim they are grouped by.
AxisList axes_by(const LocalGraph& l, const Graph& g, DimId rows) {
  const std::optional<DimId> by = l.axes.groups(rows, g.dims);
  return by ? l.axes.of[*by] : AxisList();
}

void check(const LocalGraph& l, const Graph& g, const GroupRowsAttrs& a, const AxisList& over) {
  const AxisList &batch = l.axes.of[a.batch], &rows = l.axes.of[a.rows];
  const std::string &b = g.dim(a.batch).name, &by = g.dim(a.rows).by;
  if (batch.size() < over.size() || !std::equal(over.rbegin(), over.rend(), batch.rbegin()))
    throw Error("layout", "rows are exchanged over '{}', where '{}' lies, and '{}' lies on '{}'",
                join(l.axes.names(over), ","), by, b, join(l.axes.names(batch), ","))
        .hint("let the axes of '{}' end with those of '{}', or use parallel.expert_rows = \"gather\"", b, by)
        .about(settings_of({b, by}, l.axes.names(over)));
  for (AxisId x : batch)
    if (std::find(rows.begin(), rows.end(), x) == rows.end())
      throw Error("layout", "dim '{}' lies on '{}' and '{}' does not", b, l.axes.names({x})[0], g.dim(a.rows).name)
          .hint("leave '{}' out of the layout: it follows from '{}'", g.dim(a.rows).name, b)
          .about(settings_of({g.dim(a.rows).name}, {}));
}

std::vector<Tensor> plan(LocalGraph& l, const Graph& g, const Node& n, Tensor which, const std::string& cause) {
  GroupRowsAttrs a = n.attrs.as<GroupRowsAttrs>();
  if (const AxisList over = axes_by(l, g, a.rows); !over.empty()) {
    check(l, g, a, over);
    const int members = l.axes.ranks(over);
    a.whole = l.whole_along(a.batch, over);
    a.from = l.own_dim(fmt::format("{}/{}", g.dim(a.from).name, members), members);
    a.to = l.own_dim(fmt::format("{}/{}", g.dim(a.to).name, members), members);
    DimSet dims = which.type().dims;
    std::replace(dims.begin(), dims.end(), a.batch, a.whole);
    which = l.rename(which, dims, {}, cause).tensor;
  }
  const Tensor first = group_rows(which, a);
  std::vector<Tensor> all;
  for (int r = 0; r < int(n.results.size()); ++r) all.push_back(l.builder.result(first, r));
  return all;
}

// The rows that leave a rank, in their order.
DimId sent_dim(LocalGraph& l, const Graph& g, DimId rows) {
  return l.own_dim(g.dim(rows).name + "/sent", l.builder.graph.dim(rows).filled);
}

DimSet replaced(DimSet dims, DimId from, DimId to) {
  std::replace(dims.begin(), dims.end(), from, to);
  return dims;
}

Tensor there(LocalGraph& l, const Graph& g, const Node& n, std::vector<Tensor> in, const std::string& cause) {
  const DispatchAttrs& a = n.attrs.as<DispatchAttrs>();
  const AxisList over = axes_by(l, g, a.rows);
  if (over.empty()) return l.builder.emit(*n.op, in, n.attrs);
  const DimId sent = sent_dim(l, g, a.rows);
  const Tensor x = l.builder.emit(*n.op, in, DispatchAttrs{sent, replaced(a.out, a.rows, sent)});
  return l.exchange_rows(x, in[2], sent, a.rows, over, cause);
}

Tensor back(LocalGraph& l, const Graph& g, const Node& n, std::vector<Tensor> in, const std::string& cause) {
  const CombineAttrs& a = n.attrs.as<CombineAttrs>();
  const AxisList over = axes_by(l, g, a.rows);
  if (over.empty()) return l.builder.emit(*n.op, in, n.attrs);
  const DimId sent = sent_dim(l, g, a.rows);
  in[0] = l.exchange_rows(in[0], in[3], a.rows, sent, over, cause);
  return l.builder.emit(*n.op, in, CombineAttrs{sent, a.out});
}

}  // namespace

bool paired(const Graph& g, DimId a, DimId b) { return g.dim(a).by == g.dim(b).name || g.dim(b).by == g.dim(a).name; }

AxisSet shared_axes(const Graph& g, const DimAxes& axes, const DimSet& space, DimId d) {
  AxisSet shared;
  for (DimId other : space)
    if (paired(g, d, other)) shared |= axes.set(d) & axes.set(other);
  return shared;
}

std::vector<Tensor> local(LocalGraph& l, const Graph& g, const Node& n, const std::vector<Tensor>& in,
                          const std::string& cause) {
  if (n.op->regroups == Regroups::plan) return plan(l, g, n, in[0], cause);
  return {n.op->regroups == Regroups::there ? there(l, g, n, in, cause) : back(l, g, n, in, cause)};
}

}  // namespace stretto::grouped
