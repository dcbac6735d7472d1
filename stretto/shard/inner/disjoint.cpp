#include "stretto/shard/inner/disjoint.h"

#include <algorithm>

namespace stretto::disjoint {
namespace {

bool has(const std::vector<int>& list, int x) { return std::find(list.begin(), list.end(), x) != list.end(); }

bool has_all(const DimSet& dims, const DimSet& of) { return without(of, dims).empty(); }

}  // namespace

bool masked(const Node& n, const Spread& s, int operand, const Disjoint& parts, const DimAxes& axes) {
  return s.rows && has(s.rows->masked, operand) && n.operands[s.rows->which] == parts.support &&
         axes.set(s.rows->of) == parts.axes;
}

bool within_rows(const Graph& g, const Node& n, Value support) {
  const DimSet& rows = g.type(support).dims;
  if (n.results.size() != 1 || !has_all(n.results[0].dims, rows)) return false;
  const bool sums = n.operands.size() == 1 && !n.op->view && !n.op->layout_change &&
                    has_all(g.type(n.operands[0]).dims, n.results[0].dims) && has(n.op->spread({g, n}).linear, 0);
  return n.op->pointwise || sums;
}

bool makes_zero(const Spread& s, const std::vector<bool>& zero) {
  if (s.jointly) return std::all_of(zero.begin(), zero.end(), [](bool z) { return z; });
  for (int k = 0; bool z : zero) {
    if (z && (has(s.linear, k) || has(s.zeros, k))) return true;
    ++k;
  }
  return false;
}

Disjoint made_by(const Graph& g, const Node& n, const Spread& s, const DimAxes& axes) {
  if (!s.rows || n.results.size() != 1) return {};
  const Value which = n.operands[s.rows->which];
  for (DimId d : s.rows->of) {
    if (contains(n.results[0].dims, d)) return {};  // sums over rows: places of their own
    for (DimId row : g.type(which).dims)
      if (g.dim(row).by == g.dim(d).name) return {};  // all that rows name is here
  }
  if (!has_all(n.results[0].dims, g.type(which).dims)) return {};
  return {axes.set(s.rows->of), which};
}

}  // namespace stretto::disjoint
