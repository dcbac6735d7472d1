#include "stretto/stage/owners.h"

#include <algorithm>

namespace stretto {
namespace {

// The dim it was made from with like() or whole(), through all steps.
std::string_view origin(const Graph& g, DimId d) {
  const Dim* dim = &g.dim(d);
  for (std::size_t steps = 0; steps < g.dims.size() && !dim->parent.empty(); ++steps) {
    const auto it =
        std::find_if(g.dims.begin(), g.dims.end(), [&](const Dim& other) { return other.name == dim->parent; });
    if (it == g.dims.end()) return dim->parent;
    dim = &*it;
  }
  return dim->name;
}

bool has_two_of_one_origin(const Graph& g, const DimSet& dims) {
  for (std::size_t i = 0; i < dims.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (origin(g, dims[i]) == origin(g, dims[j])) return true;
  return false;
}

}  // namespace

Owners::Owners(const StepGraph& s, const SplitOptions& options) : g_(s.graph), options_(options) {
  const std::size_t n = g_.nodes.size();
  free_.assign(n, 0), activation_.assign(n, 0), inner_.assign(n, 0);
  for (std::size_t i = 0; i < n; ++i) {
    const Node& node = g_.nodes[i];
    pieces_ = std::max<std::uint32_t>(pieces_, node.piece + 1u);
    free_[i] = node.op->leaf != Leaf::param;
    activation_[i] = node.op->leaf == Leaf::argument;
    for (Value v : node.operands) {
      free_[i] = free_[i] && free_[v.node.value];
      activation_[i] = activation_[i] || activation_[v.node.value];
    }
  }
  // I: what a lower piece needs, and what that needs within the piece.
  for (std::size_t i = n; i-- > 0;) {
    const Node& user = g_.nodes[i];
    if (!user.backward) continue;
    for (Value v : user.operands) {
      const Node& node = g_.node(v);
      if (node.backward && (user.piece != node.piece || inner_[i])) inner_[v.node.value] = 1;
    }
  }
  if (std::find(options.recompute.begin(), options.recompute.end(), Recompute::selective) != options.recompute.end())
    find_kept();
}

// Products are dear to make again and are kept, with two exceptions of the same kind: scores of every position for
// every position, and products of two activations that are larger than both.
bool Owners::costly(Value v) const {
  const Node& n = g_.node(v);
  if (n.op->costly != Costly::product) return n.op->costly == Costly::yes;
  std::size_t operands = 0;
  for (Value o : n.operands) {
    if (!activation_[o.node.value]) return true;
    operands += g_.bytes(g_.type(o));
  }
  return !has_two_of_one_origin(g_, g_.type(v).dims) && g_.bytes(g_.type(v)) <= operands;
}

// Selective: results of contractions and attention, attention's operands, and what another piece reads.
void Owners::find_kept() {
  kept_.resize(g_.nodes.size());
  for (std::size_t i = 0; i < g_.nodes.size(); ++i)
    for (std::size_t r = 0; r < g_.nodes[i].results.size(); ++r)
      kept_[i].push_back(costly({NodeId{std::uint32_t(i)}, std::uint8_t(r)}));
  const auto behind_views = [&](Value v) {
    while (g_.node(v).op->view) v = g_.node(v).operands[0];
    return v;
  };
  for (const Node& n : g_.nodes) {
    if (n.op->view) continue;
    for (Value v : n.operands) {
      const Value base = behind_views(v);
      if (n.piece != g_.node(base).piece || (n.op->keeps_operands && !n.backward))
        kept_[base.node.value][base.result] = 1;
    }
  }
}

bool Owners::source(Value v) const { return g_.node(v).op->given(); }

std::uint32_t Owners::of(Value v, std::uint32_t reader) const {
  const Node& n = g_.node(v);
  if (n.backward) return task(inner_[v.node.value] ? Part::I : Part::W, n.piece);
  const std::uint32_t forward = task(Part::F, n.piece), again = task(Part::R, n.piece);
  const Part reading = part(reader);
  if (reading < Part::R || reading > Part::W) return forward;
  switch (mode(n.piece)) {
    case Recompute::none:
      return forward;
    case Recompute::full:  // what another stage reads has arrived there
      return stage(n.piece) == stage(piece(reader)) ? again : forward;
    case Recompute::selective:
      return kept_[v.node.value][v.result] ? forward : again;
  }
  return forward;
}

}  // namespace stretto
