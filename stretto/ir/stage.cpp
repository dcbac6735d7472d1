#include "stretto/ir/stage.h"

#include <algorithm>

namespace stretto {
namespace {

Type widened(Type t) {
  t.dtype = wide(t.dtype);
  return t;
}

template <class F>
void for_each_type(const OpCall& c, const F& f) {
  for (int i = 0; i < c.inputs(); ++i) f(c.in(i));
  for (const Type& t : c.node.results) f(t);
}

}  // namespace

bool needs_stage(const OpCall& c) {
  bool any = false;
  for_each_type(c, [&](const Type& t) { any = any || t.dtype == bf16; });
  return c.node.op->staged && any;
}

DimSet stage_slices(const OpCall& c) {
  const Spread s = c.node.op->spread(c);
  i64 left = 0;  // elements of a slice, of all that are copied
  for_each_type(c, [&](const Type& t) { left += t.dtype == bf16 ? c.elements(t) : 0; });
  DimSet slices;
  for (const DimId d : c.in(0).dims) {
    if (!slices.empty() && left <= stage_elements) break;
    // Without padding: `logical` of a split dim is that of all ranks.
    bool apart = c.graph.dim(d).valid() % c.graph.size(d) == 0 && !contains(s.serial, d);
    for (const auto& [reduced, how] : s.reduce) apart = apart && reduced != d;
    for_each_type(c, [&](const Type& t) { apart = apart && contains(t.dims, d); });
    if (!apart) continue;
    slices.push_back(d);
    left /= c.graph.size(d);
  }
  return slices;
}

Graph staged(const OpCall& c) {
  Graph g;
  g.dims = c.graph.dims;
  for (const DimId d : stage_slices(c)) g.dims[d.value].size = 1, g.dims[d.value].logical = 0;
  Node own = c.node;
  own.scope = 0;
  for (Value& v : own.operands) {
    Node operand{.op = c.graph.node(v).op, .results = {widened(c.graph.type(v))}};
    v = {NodeId{std::uint32_t(g.nodes.size())}, 0};
    g.nodes.push_back(std::move(operand));
  }
  for (Type& t : own.results) t = widened(t);
  g.nodes.push_back(std::move(own));
  return g;
}

std::size_t staged_bytes(i64 elements) { return (std::size_t(elements) * size_of(f32) + 63) / 64 * 64; }

std::size_t scratch_of(const OpCall& c) {
  if (!needs_stage(c)) return c.node.op->scratch ? c.node.op->scratch(c) : 0;
  std::size_t bytes = 0;
  const Graph g = staged(c);
  for_each_type(c, [&](const Type& t) {
    if (t.dtype == bf16) bytes += staged_bytes(g.elements(t));
  });
  return bytes + (c.node.op->scratch ? c.node.op->scratch({g, g.nodes.back()}) : 0);
}

}  // namespace stretto
