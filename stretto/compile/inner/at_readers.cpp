#include "stretto/compile/inner/at_readers.h"

#include <algorithm>
#include <ranges>

#include "stretto/ir/op.h"

namespace stretto {
namespace {

// A boundary stands in the piece that it starts and reads from the one before.
PieceId reading_piece(const Node& n) { return PieceId(n.op->starts_piece && n.piece > 0 ? n.piece - 1 : n.piece); }

NodeId append(Graph& g, Node n) {
  g.nodes.push_back(std::move(n));
  return NodeId(g.nodes.size() - 1);
}

}  // namespace

AtReaders::AtReaders(const Graph& g) : g_(g), derived_(g.nodes.size()), home_(g.nodes.size()), moved_(g.nodes.size()) {
  find_derived();
  find_homes();
  if (!needed_) return;
  out_.dims = g.dims;
  out_.scopes = g.scopes;
  for (NodeId id : derived_.ids()) {
    if (derived_[id]) continue;
    Node n = g.node(id);
    for (Value& v : n.operands) v = local(v, reading_piece(n));
    moved_[id] = append(out_, std::move(n));
  }
}

void AtReaders::find_derived() {
  IdVector<NodeId, char> fixed(g_.nodes.size());  // depends on nothing: constants, positions
  for (NodeId id : derived_.ids()) {
    const Node& n = g_.node(id);
    const auto is_fixed = [&](Value v) { return fixed[v.node] != 0; };
    const auto of_params = [&](Value v) { return g_.node(v).op->leaf == Leaf::param || derived_[v.node]; };
    const auto either = [&](Value v) { return is_fixed(v) || of_params(v); };
    fixed[id] = !n.op->given() && std::ranges::all_of(n.operands, is_fixed);
    derived_[id] =
        !n.op->starts_piece && std::ranges::any_of(n.operands, of_params) && std::ranges::all_of(n.operands, either);
  }
}

void AtReaders::find_homes() {
  for (NodeId id : home_.ids() | std::views::reverse) {
    const Node& n = g_.node(id);
    const std::optional<PieceId> piece = derived_[id] ? home_[id] : reading_piece(n);
    if (!piece) continue;
    for (Value v : n.operands) {
      std::optional<PieceId>& first = home_[v.node];
      first = first ? std::min(*first, *piece) : *piece;
      needed_ = needed_ || (derived_[v.node] && *piece != PieceId(g_.node(v).piece));
    }
  }
  for (NodeId id : home_.ids()) {
    if (home_[id]) continue;
    PieceId last(0);  // if nobody reads it: where the last of its parameters is first read
    for (Value v : g_.node(id).operands) last = std::max(last, home(v.node));
    home_[id] = last;
    needed_ = needed_ || (derived_[id] && last != PieceId(g_.node(id).piece));
  }
}

Value AtReaders::local(Value v, PieceId piece) {
  if (!derived_[v.node]) return {moved_[v.node], v.result};
  if (const auto it = made_.find({v.node, piece}); it != made_.end()) return {it->second, v.result};
  Node n = g_.node(v);
  for (Value& o : n.operands) o = local(o, piece);
  n.piece = piece.value;
  const NodeId id = append(out_, std::move(n));
  made_[{v.node, piece}] = id;
  return {id, v.result};
}

Value AtReaders::operator()(Value old) { return needed_ ? local(old, home(old.node)) : old; }

}  // namespace stretto
