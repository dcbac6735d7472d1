#include "stretto/compile/at_readers.h"

#include <algorithm>
#include <limits>

#include "stretto/ir/op.h"

namespace stretto {
namespace {
constexpr int nobody = std::numeric_limits<int>::max();
}

AtReaders::AtReaders(const Graph& g)
    : g_(g), derived_(g.nodes.size(), 0), home_(g.nodes.size(), nobody), moved_(g.nodes.size()) {
  std::vector<char> fixed(g.nodes.size(), 0);  // depends on nothing: constants, positions
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    const Node& n = g.nodes[i];
    const auto is_fixed = [&](Value v) { return fixed[v.node.value] != 0; };
    const auto of_params = [&](Value v) { return g.node(v).op->leaf == Leaf::param || derived(v); };
    fixed[i] = !n.op->given() && std::all_of(n.operands.begin(), n.operands.end(), is_fixed);
    derived_[i] =
        !n.op->starts_piece && std::any_of(n.operands.begin(), n.operands.end(), of_params) &&
        std::all_of(n.operands.begin(), n.operands.end(), [&](Value v) { return is_fixed(v) || of_params(v); });
  }
  for (std::size_t i = g.nodes.size(); i-- > 0;)
    for (Value v : g.nodes[i].operands) {
      const int piece = derived_[i] ? home_[i] : reading_piece(g.nodes[i]);
      home_[v.node.value] = std::min(home_[v.node.value], piece);
      needed_ = needed_ || (derived(v) && piece != nobody && piece != g.node(v).piece);
    }
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    if (home_[i] != nobody) continue;
    home_[i] = 0;  // nobody reads it: where the last of its parameters is read first
    for (Value v : g.nodes[i].operands) home_[i] = std::max(home_[i], home_[v.node.value]);
    needed_ = needed_ || (derived_[i] && home_[i] != g.nodes[i].piece);
  }
  if (!needed_) return;
  out_.dims = g.dims;
  out_.scopes = g.scopes;
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    if (derived_[i]) continue;
    Node n = g.nodes[i];
    for (Value& v : n.operands) v = local(v, reading_piece(n));
    moved_[i] = NodeId{std::uint32_t(out_.nodes.size())};
    out_.nodes.push_back(std::move(n));
  }
}

// A boundary stands in the piece behind it and reads from the one before.
int AtReaders::reading_piece(const Node& n) const { return n.op->starts_piece ? std::max(0, n.piece - 1) : n.piece; }

Value AtReaders::local(Value v, int piece) {
  if (!derived(v)) return {moved_[v.node.value], v.result};
  if (const auto it = made_.find({v.node.value, piece}); it != made_.end()) return {it->second, v.result};
  Node n = g_.node(v);
  for (Value& o : n.operands) o = local(o, piece);
  n.piece = std::uint16_t(piece);
  out_.nodes.push_back(std::move(n));
  const NodeId id{std::uint32_t(out_.nodes.size() - 1)};
  made_[{v.node.value, piece}] = id;
  return {id, v.result};
}

Value AtReaders::operator()(Value old) { return needed_ ? local(old, home_[old.node.value]) : old; }

}  // namespace stretto
