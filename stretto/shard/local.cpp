#include "stretto/shard/local.h"

#include <algorithm>

#include "stretto/base/text.h"
#include "stretto/ops/all_gather.h"
#include "stretto/ops/all_reduce.h"
#include "stretto/ops/all_to_all.h"
#include "stretto/ops/block.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/reduce_scatter.h"
#include "stretto/ops/rename.h"
#include "stretto/shard/epilogue.h"

namespace stretto {
namespace {

AxisMask bits(const std::vector<int>& axes) {
  AxisMask m = 0;
  for (int a : axes) m |= AxisMask(1) << a;
  return m;
}

std::size_t common(const std::vector<int>& a, const std::vector<int>& b) {
  std::size_t k = 0;
  while (k < a.size() && k < b.size() && a[k] == b[k]) ++k;
  return k;
}

}  // namespace

LocalGraph::LocalGraph(const Graph& logical, DimAxes all, Sharded& to) : axes(std::move(all)), to_(to) {
  builder.graph.dims = logical.dims;
  builder.graph.scopes = logical.scopes;
  for (std::size_t i = 0; i < logical.dims.size(); ++i) {
    Dim& d = builder.graph.dims[i];
    if (axes.of[i].empty()) continue;
    d.logical = d.valid();
    d.size /= axes.ranks(axes.of[i]);
    d.axes = axes.names(axes.of[i]);
  }
}

void LocalGraph::stand_at(const Graph&, const Node& n) { stand_at(n.scope, n.piece, n.backward); }

void LocalGraph::stand_at(std::uint32_t scope, std::uint16_t piece, bool backward) {
  builder.scope = scope;
  builder.force_piece = piece;
  builder.backward = backward;
}

std::vector<int> LocalGraph::list(AxisMask m) const {
  std::vector<int> all;
  for (std::size_t a = 0; a < axes.mesh.size(); ++a)
    if (m >> a & 1) all.push_back(int(a));
  return all;
}

Tensor LocalGraph::record(Tensor made, const std::vector<int>& over, const std::string& cause) {
  const Graph& g = builder.graph;
  const Node& n = g.node(made.value);
  const Type& operand = g.type(n.operands[0]);
  to_.collectives.push_back({.kind = std::string(n.op->name),
                             .axes = axes.names(over),
                             .ranks = axes.ranks(over),
                             .elements = g.elements(operand),
                             .bytes = g.bytes(operand),
                             .cause = cause,
                             .piece = n.piece,
                             .backward = n.backward});
  return made;
}

Tensor LocalGraph::reduce(Tensor x, AxisMask over, Reduce how, const std::string& cause) {
  if (!over) return x;
  return record(all_reduce(x, axes.names(over), how), list(over), cause);
}

DimId LocalGraph::dim_with(DimId like, std::vector<int> over) {
  if (axes.of[like.value] == over) return like;
  Dim d = builder.graph.dim(like);
  const i64 whole = d.size * axes.ranks(axes.of[like.value]);
  d.name = fmt::format("{}/{}", d.name, over.empty() ? "whole" : join(axes.names(over), "/"));
  d.axes = axes.names(over);
  d.size = whole / axes.ranks(over);
  d.logical = d.logical ? d.logical : whole;
  if (over.empty() && d.logical == whole) d.logical = 0;
  const DimId id = builder.intern(d);
  if (id.value >= axes.of.size()) axes.of.resize(id.value + 1u);
  axes.of[id.value] = std::move(over);
  return id;
}

// Dims that still have a name another one is to get, as in a swap, get names of their own: dims move one by one.
Tensor LocalGraph::step_aside(Tensor x, DimSet& at, const DimSet& to) {
  RenameAttrs aside;
  for (std::size_t j = 0; j < at.size(); ++j) {
    if (at[j] == to[j] || !contains(to, at[j])) continue;
    Dim d = builder.graph.dim(at[j]);
    d.name += "/before";
    const DimId id = builder.intern(d);
    if (id.value >= axes.of.size()) axes.of.resize(id.value + 1u);
    axes.of[id.value] = axes.of[at[j].value];
    aside.from.push_back(at[j]), aside.to.push_back(id);
    at[j] = id;
  }
  return aside.from.empty() ? x : builder.emit(rename_op, {x}, std::move(aside));
}

Tensor LocalGraph::rename(Tensor x, const DimSet& to, AxisMask& pending, const std::string& cause, bool summed_later) {
  gathered = false;
  const std::size_t n = to.size();
  DimSet at = x.type().dims;
  std::vector<std::vector<int>> now(n), goal(n);
  for (std::size_t j = 0; j < n; ++j) now[j] = axes.of[at[j].value], goal[j] = axes.of[to[j].value];
  if (now != goal) x = step_aside(x, at, to);
  const auto taken = [&](int a) {  // the dim that lies on it, or n
    for (std::size_t j = 0; j < n; ++j)
      if (std::find(now[j].begin(), now[j].end(), a) != now[j].end()) return j;
    return n;
  };
  const auto ready = [&](std::size_t j) { return common(now[j], goal[j]) == now[j].size(); };  // nothing must go
  const auto wanted = [&](int a) {
    for (std::size_t j = 0; j < n; ++j)
      if (std::find(goal[j].begin(), goal[j].end(), a) != goal[j].end()) return true;
    return false;
  };
  const auto move_to = [&](std::size_t j, std::vector<int> over) {  // the dim's id once it lies on `over`
    now[j] = std::move(over);
    return now[j] == goal[j] ? to[j] : dim_with(to[j], now[j]);
  };
  // The next axes of dim j that are all pending, or all free.
  const auto next = [&](std::size_t j, bool are_pending) {
    std::vector<int> run;
    if (ready(j))
      for (std::size_t k = now[j].size(); k < goal[j].size(); ++k) {
        const int a = goal[j][k];
        if (taken(a) != n || bool(pending >> a & 1) != are_pending) break;
        run.push_back(a);
      }
    return run;
  };
  const auto extended = [](std::vector<int> list, const std::vector<int>& more) {
    list.insert(list.end(), more.begin(), more.end());
    return list;
  };

  const auto cut = [&] {
    for (std::size_t j = 0; j < n; ++j)
      if (const std::vector<int> run = next(j, false); !run.empty()) {
        const DimId id = move_to(j, extended(now[j], run));
        x = block(x, at[j], id);
        at[j] = id;
        return true;
      }
    return false;
  };
  const auto scatter = [&] {
    for (std::size_t j = 0; j < n; ++j)
      if (const std::vector<int> run = next(j, true); !run.empty()) {
        const DimId id = move_to(j, extended(now[j], run));
        x = record(reduce_scatter(x, at[j], id, axes.names(run)), run, cause);
        pending &= ~bits(run);
        at[j] = id;
        return true;
      }
    return false;
  };
  const auto exchange = [&] {
    for (std::size_t j = 0; j < n; ++j) {
      if (!ready(j) || now[j].size() == goal[j].size()) continue;
      const int a = goal[j][now[j].size()];
      const std::size_t from = taken(a);
      if (from == n || from == j || now[from].back() != a || ready(from)) continue;
      std::vector<int> less = now[from];
      less.pop_back();
      const DimId whole = move_to(from, std::move(less)), part = move_to(j, extended(now[j], {a}));
      x = record(all_to_all(x, at[from], whole, at[j], part, axes.names(std::vector<int>{a})), {a}, cause);
      at[from] = whole, at[j] = part;
      return true;
    }
    return false;
  };
  const auto gather = [&] {
    for (std::size_t j = 0; j < n; ++j) {
      if (ready(j)) continue;
      const std::size_t least = common(now[j], goal[j]);
      std::size_t keep = now[j].size();
      while (keep > least && !wanted(now[j][keep - 1])) --keep;
      if (keep == now[j].size()) {  // wanted elsewhere, and not to be had by an exchange
        --keep;
        const std::string axis = axes.names(std::vector<int>{now[j][keep]})[0];
        to_.warnings.push_back(
            fault("layout", "make the axis that another dim takes over the last one of its list",
                  "{}: axis '{}' is gathered and cut again ({} bytes per rank)", cause, axis,
                  builder.graph.bytes(x.type()) * std::size_t(axes.mesh[std::size_t(now[j][keep])].size)));
      }
      const std::vector<int> run(now[j].begin() + std::ptrdiff_t(keep), now[j].end());
      const DimId id = move_to(j, std::vector<int>(now[j].begin(), now[j].begin() + std::ptrdiff_t(keep)));
      if (summed_later) {
        x = unblock(x, at[j], id);
        pending |= bits(run);
      } else {
        x = record(all_gather(x, at[j], id, axes.names(run)), run, cause);
        gathered = true;
      }
      at[j] = id;
      return true;
    }
    return false;
  };
  while (cut() || scatter() || exchange() || gather()) {
  }
  RenameAttrs rest;  // what only changes its name
  for (std::size_t j = 0; j < n; ++j)
    if (at[j] != to[j]) rest.from.push_back(at[j]), rest.to.push_back(to[j]);
  return rest.from.empty() ? x : builder.emit(rename_op, {x}, std::move(rest));
}

Tensor LocalGraph::only_first(Tensor x, AxisMask over) { return stretto::only_first(x, axes.mesh, axes.names(over)); }

DimId LocalGraph::flat_dim(i64 elements, const std::vector<int>& over, i64 blocks) {
  const i64 padded = (elements + blocks - 1) / blocks * blocks;
  std::string name = fmt::format("flat{}", elements);
  if (!over.empty()) name += fmt::format("+{}/{}", padded - elements, join(axes.names(over), "/"));
  const DimId id = builder.intern(Dim{.name = name,
                                      .size = over.empty() ? elements : padded / axes.ranks(over),
                                      .logical = over.empty() ? 0 : elements,
                                      .axes = axes.names(over)});
  if (id.value >= axes.of.size()) axes.of.resize(id.value + 1u);
  axes.of[id.value] = over;
  return id;
}

Tensor LocalGraph::gather_flat(Tensor x, const Type& type, const std::vector<int>& over, const std::string& cause) {
  return record(all_gather_flat(x, type.dims, axes.names(over)), over, cause);
}

Tensor LocalGraph::scatter_flat(Tensor x, DimId flat, AxisMask& pending, const std::string& cause) {
  const std::vector<int> over = axes.of[flat.value];
  if ((bits(over) & ~pending) == 0) {
    pending &= ~bits(over);
    return record(reduce_scatter_flat(x, flat, axes.names(over)), over, cause);
  }
  const AxisMask both = bits(over) & pending;  // whole along some of the axes: nothing to add up there
  x = reduce(x, both, Reduce::sum, cause);
  pending &= ~both;
  return block_flat(x, flat);
}

}  // namespace stretto
