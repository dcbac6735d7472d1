#include "stretto/shard/inner/local.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "stretto/base/text.h"
#include "stretto/ops/all_gather.h"
#include "stretto/ops/all_reduce.h"
#include "stretto/ops/all_to_all.h"
#include "stretto/ops/block.h"
#include "stretto/ops/exchange_rows.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/reduce_scatter.h"
#include "stretto/ops/rename.h"
#include "stretto/shard/epilogue.h"

namespace stretto {

LocalGraph::LocalGraph(const Graph& logical, DimAxes all, double room) : axes(std::move(all)) {
  builder.graph.dims = logical.dims;
  builder.graph.scopes = logical.scopes;
  for (DimId id : axes.of.ids()) {
    Dim& d = builder.graph.dims[id.value];
    if (axes.of[id].empty()) continue;
    if (const std::optional<DimId> by = axes.groups(id, builder.graph.dims); by && !axes.of[*by].empty()) {
      // A rank's part is no block of the whole: it has an order, and a size, of its own.
      d.filled = d.size / axes.ranks(axes.of[id]);
      d.size = std::min<i64>(std::ceil(room * double(d.filled)), d.filled * axes.ranks(axes.of[*by]));
      continue;
    }
    d.logical = d.valid();
    d.size /= axes.ranks(axes.of[id]);
    d.axes = axes.names(axes.of[id]);
  }
}

void LocalGraph::stand_at(const Node& n) { stand_at(n.scope, n.piece, n.backward); }

void LocalGraph::stand_at(std::uint32_t scope, std::uint16_t piece, bool backward) {
  builder.scope = scope;
  builder.force_piece = piece;
  builder.backward = backward;
}

Tensor LocalGraph::record(Tensor made, const AxisList& over, const std::string& cause) {
  const Graph& g = builder.graph;
  const Node& n = g.node(made.value);
  const Type& operand = g.type(n.operands[0]);
  collectives.push_back({.kind = std::string(n.op->name),
                         .axes = axes.names(over),
                         .ranks = axes.ranks(over),
                         .elements = g.elements(operand),
                         .bytes = g.bytes(operand),
                         .cause = cause,
                         .piece = n.piece,
                         .backward = n.backward});
  return made;
}

Tensor LocalGraph::reduce(Tensor x, AxisSet over, Reduce how, const std::string& cause) {
  if (!over) return x;
  return record(all_reduce(x, axes.names(over), how), axes.list(over), cause);
}

DimId LocalGraph::dim_on(DimId like, AxisList over) {
  if (axes.of[like] == over) return like;
  Dim d = builder.graph.dim(like);
  const i64 whole = d.size * axes.ranks(axes.of[like]);
  d.name = fmt::format("{}/{}", d.name, over.empty() ? "whole" : join(axes.names(over), "/"));
  d.axes = axes.names(over);
  d.size = whole / axes.ranks(over);
  d.logical = d.logical ? d.logical : whole;
  if (over.empty() && d.logical == whole) d.logical = 0;
  const DimId id = builder.intern(d);
  axes.lay(id, std::move(over));
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
    axes.lay(id, axes.of[at[j]]);
    aside.from.push_back(at[j]), aside.to.push_back(id);
    at[j] = id;
  }
  return aside.from.empty() ? x : builder.emit(rename_op, {x}, std::move(aside));
}

LocalGraph::Renamed LocalGraph::rename(Tensor x, const DimSet& to, AxisSet pending, const std::string& cause,
                                       Gather how) {
  DimSet at = x.type().dims;
  std::vector<AxisList> now, goal;
  for (DimId d : at) now.push_back(axes.of[d]);
  for (DimId d : to) goal.push_back(axes.of[d]);
  if (now != goal) x = step_aside(x, at, to);
  const Moves moves = moves_between(std::move(now), goal, pending, how);
  Renamed r{.pending = moves.pending};
  for (const Move& m : moves.list) {
    x = moved(x, m, at, to, cause);
    r.gathered = r.gathered || m.kind == Move::Kind::gather;
  }
  RenameAttrs rest;  // what only changes its name
  for (std::size_t j = 0; j < to.size(); ++j)
    if (at[j] != to[j]) rest.from.push_back(at[j]), rest.to.push_back(to[j]);
  r.tensor = rest.from.empty() ? x : builder.emit(rename_op, {x}, std::move(rest));
  return r;
}

DimId LocalGraph::whole_along(DimId d, const AxisList& gone) {
  AxisList rest = axes.of[d];
  for (AxisId a : gone) std::erase(rest, a);
  return dim_on(d, std::move(rest));
}

DimId LocalGraph::own_dim(std::string name, i64 size) {
  const DimId id = builder.intern(Dim{.name = std::move(name), .size = size});
  axes.lay(id, {});
  return id;
}

Tensor LocalGraph::exchange_rows(Tensor x, Tensor counts, DimId sent, DimId came, const AxisList& over,
                                 const std::string& cause) {
  return record(stretto::exchange_rows(x, counts, sent, came, axes.names(over)), over, cause);
}

// The dim after a move: it has its new name as soon as it lies where it is to lie.
DimId LocalGraph::changed(const Move::Change& c, const DimSet& to) { return dim_on(to[c.dim], c.lies_on); }

Tensor LocalGraph::moved(Tensor x, const Move& m, DimSet& at, const DimSet& to, const std::string& cause) {
  using Kind = Move::Kind;
  if (m.in_vain) warn_in_vain(x, m, cause);
  const std::vector<std::string> over = axes.names(m.over);
  if (m.kind == Kind::exchange) {
    const DimId whole = changed(*m.from, to), part = changed(m.change, to);
    x = record(all_to_all(x, at[m.from->dim], whole, at[m.change.dim], part, over), m.over, cause);
    at[m.from->dim] = whole, at[m.change.dim] = part;
    return x;
  }
  const DimId before = std::exchange(at[m.change.dim], changed(m.change, to)), after = at[m.change.dim];
  if (m.kind == Kind::cut) return block(x, before, after);
  if (m.kind == Kind::unblock) return unblock(x, before, after);
  return record(m.kind == Kind::scatter ? reduce_scatter(x, before, after, over) : all_gather(x, before, after, over),
                m.over, cause);
}

void LocalGraph::warn_in_vain(Tensor x, const Move& m, const std::string& cause) {
  warnings.push_back(fault("layout", "make the axis that another dim takes over the last one of its list",
                           "{}: axis '{}' is gathered and cut again ({} bytes per rank)", cause, axes.names(m.over)[0],
                           builder.graph.bytes(x.type()) * axes.ranks(m.over)));
}

Tensor LocalGraph::only_first(Tensor x, AxisSet over) { return stretto::only_first(x, axes.mesh, axes.names(over)); }

DimId LocalGraph::flat_dim(i64 elements, const AxisList& over, i64 blocks) {
  const i64 padded = (elements + blocks - 1) / blocks * blocks;
  std::string name = fmt::format("flat{}", elements);
  if (!over.empty()) name += fmt::format("+{}/{}", padded - elements, join(axes.names(over), "/"));
  const DimId id = builder.intern(Dim{.name = name,
                                      .size = over.empty() ? elements : padded / axes.ranks(over),
                                      .logical = over.empty() ? 0 : elements,
                                      .axes = axes.names(over)});
  axes.lay(id, over);
  return id;
}

Tensor LocalGraph::gather_flat(Tensor x, const Type& type, const AxisList& over, const std::string& cause) {
  return record(all_gather_flat(x, type.dims, axes.names(over)), over, cause);
}

Tensor LocalGraph::scatter_flat(Tensor x, DimId flat, AxisSet& pending, const std::string& cause) {
  const AxisList over = axes.of[flat];
  const AxisSet summed = pending & over;
  pending -= over;
  if (summed == over) return record(reduce_scatter_flat(x, flat, axes.names(over)), over, cause);
  return block_flat(reduce(x, summed, Reduce::sum, cause),
                    flat);  // whole along some axes: nothing to add up there
}

}  // namespace stretto
