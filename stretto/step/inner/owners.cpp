#include "stretto/step/inner/owners.h"

#include <algorithm>
#include <ranges>

namespace stretto {
namespace {

bool has_two_of_one_origin(const Graph& g, const DimSet& dims) {
  for (std::size_t i = 0; i < dims.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (g.origin(dims[i]) == g.origin(dims[j])) return true;
  return false;
}

}  // namespace

Owners::Owners(const StepGraph& s, const SplitOptions& options)
    : g_(s.graph),
      options_(options),
      segments_(s.segments),
      free_(g_.nodes.size()),
      retyped_(g_.nodes.size()),
      put_together_(g_.nodes.size()),
      activation_(g_.nodes.size()),
      inner_(g_.nodes.size()),
      kept_(g_.nodes.size()) {
  IdVector<NodeId, char> of_parameter(g_.nodes.size());  // it, a view of it, or either in another type
  for (NodeId id : free_.ids()) {
    const Node& node = g_.node(id);
    const bool stays = node.op->view || node.op->retypes;
    of_parameter[id] = node.op->leaf == Leaf::param || (stays && of_parameter[node.operands[0].node]);
    retyped_[id] = node.op->retypes && of_parameter[id];
    put_together_[id] = node.op->into && !node.backward && has_several_pieces(node);
    pieces_ = std::max<std::size_t>(pieces_, PieceId(node.piece).value + 1u);
    free_[id] = node.op->leaf != Leaf::param;
    activation_[id] = node.op->leaf == Leaf::argument;
    for (Value v : node.operands) {
      free_[id] = free_[id] && free_[v.node];
      activation_[id] = activation_[id] || activation_[v.node];
    }
  }
  find_inner();
  if (std::find(options.recompute.begin(), options.recompute.end(), Recompute::selective) != options.recompute.end())
    find_kept();
}

bool Owners::has_several_pieces(const Node& n) const {
  return std::any_of(n.operands.begin(), n.operands.end(),
                     [&](Value v) { return g_.node(v).piece != g_.node(n.operands[0]).piece; });
}

// I: what a lower piece needs, and what that needs within the piece.
void Owners::find_inner() {
  for (NodeId id : inner_.ids() | std::views::reverse) {
    const Node& user = g_.node(id);
    if (!user.backward) continue;
    for (Value v : user.operands) {
      const Node& node = g_.node(v);
      if (node.backward && (user.piece != node.piece || inner_[id])) inner_[v.node] = 1;
    }
  }
}

// Products are expensive to recompute and are kept, with two exceptions: scores of every position for every position,
// and products of two activations that are larger than both.
bool Owners::costly(Value v) const {
  const Node& n = g_.node(v);
  if (n.op->costly == Costly::as_operands) return costly(n.operands[0]);
  if (n.op->costly != Costly::product) return n.op->costly == Costly::yes;
  std::size_t operands = 0;
  for (Value o : n.operands) {
    if (!activation_[o.node]) return true;
    operands += g_.bytes(g_.type(o));
  }
  return !has_two_of_one_origin(g_, g_.type(v).dims) && g_.bytes(g_.type(v)) <= operands;
}

// Selective: results of contractions and attention, attention's operands, and what another piece reads.
void Owners::find_kept() {
  for (NodeId id : kept_.ids())
    for (Value v{id, 0}; v.result < g_.node(id).results.size(); ++v.result) kept_[id].push_back(costly(v));
  const auto without_views = [&](Value v) {
    while (g_.node(v).op->view) v = g_.node(v).operands[0];
    return v;
  };
  for (NodeId id : kept_.ids()) {
    const Node& n = g_.node(id);
    if (n.op->view) continue;
    const bool keeps = (n.op->keeps_operands && !n.backward) || put_together_[id];
    for (Value v : n.operands) {
      const Value base = without_views(v);
      if (keeps || n.piece != g_.node(base).piece) kept_[base.node][base.result] = 1;
    }
  }
}

bool Owners::source(Value v) const { return g_.node(v).op->given(); }

MakerId Owners::of(Value v, MakerId reader) const {
  const Node& n = g_.node(v);
  const PieceId piece_of_node(n.piece);
  if (n.backward) return maker(inner_[v.node] ? Part::I : Part::W, piece_of_node);
  const MakerId forward = maker(Part::F, piece_of_node), again = maker(Part::R, piece_of_node);
  const Part reading = part(reader);
  if (reading < Part::R || reading > Part::W) return forward;
  switch (mode(piece_of_node)) {
    case Recompute::none:
      return forward;
    case Recompute::full:  // what another stage reads has arrived there; what another segment reads is kept
      return stage(piece_of_node) == stage(piece(reader)) && segment(piece_of_node) == segment(piece(reader)) ? again
                                                                                                              : forward;
    case Recompute::layer:
      return piece_of_node == piece(reader) ? again : forward;
    case Recompute::selective:
      return kept_[v.node][v.result] ? forward : again;
  }
  return forward;
}

}  // namespace stretto
