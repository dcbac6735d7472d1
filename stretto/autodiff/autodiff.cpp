#include "stretto/autodiff/autodiff.h"

#include <algorithm>
#include <map>
#include <memory>
#include <ranges>
#include <set>

#include "stretto/ir/ids.h"
#include "stretto/ops/add.h"
#include "stretto/ops/fit.h"

namespace stretto {
namespace {

// Restores what differentiation changes on the builder.
struct Backward {
  explicit Backward(Builder& b) : builder(b), scope(b.scope), piece(b.force_piece), was(b.backward) {
    b.backward = true;
  }
  ~Backward() { builder.scope = scope, builder.force_piece = piece, builder.backward = was; }
  Backward(const Backward&) = delete;
  Builder& builder;
  std::uint32_t scope;
  std::optional<std::uint16_t> piece;
  bool was;
};

struct Contribution {
  Tensor grad;
  std::uint16_t piece;  // of the user it comes from
};

Tensor total(std::span<const Contribution> parts) {
  Tensor sum = parts[0].grad;
  for (std::size_t i = 1; i < parts.size(); ++i) sum = sum + parts[i].grad;
  return sum;
}

class Differentiation {
 public:
  Differentiation(Builder& b, std::span<const Tensor> wrt) : b_(b), guard_(b), matters_(b.graph.nodes.size()) {
    std::set<Value> asked;
    for (const Tensor& t : wrt) asked.insert(t.value);
    for (NodeId id : matters_.ids()) matters_[id] = is_asked(id, asked) || passes_on(b.graph.node(id));
  }

  void start(const Root& r) {
    const Value v = r.value.value;
    if (!matters_[v.node]) return;
    const std::uint16_t piece = stand_at(v.node);
    incoming_[v].push_back({fit(r.seed, b_.graph.type(v)), piece});
  }

  void go_back() {
    for (NodeId id : matters_.ids() | std::views::reverse)
      if (matters_[id] && !b_.graph.node(id).op->no_gradient) through(id);
  }

  // One gradient per piece that uses it.
  void collect(const Tensor& of, std::vector<Gradient>& all) {
    const auto it = incoming_.find(of.value);
    if (it == incoming_.end()) return;
    b_.scope = b_.graph.node(of.value).scope;
    std::map<std::uint16_t, std::vector<Contribution>> by_piece;
    for (const Contribution& c : it->second) by_piece[c.piece].push_back(c);
    for (const auto& [piece, parts] : by_piece) {
      b_.force_piece = piece;
      all.push_back({of, piece, total(parts)});
    }
  }

 private:
  bool is_asked(NodeId id, const std::set<Value>& asked) const {
    return std::ranges::any_of(values_of(b_.graph, id), [&](Value v) { return asked.contains(v); });
  }
  // Can a gradient flow through the node to something asked for?
  bool passes_on(const Node& n) const {
    return !n.op->no_gradient && std::ranges::any_of(n.operands, [&](Value v) { return wanted(v); });
  }
  bool wanted(Value v) const { return matters_[v.node] && is_float(b_.graph.type(v).dtype); }

  // Nodes are made for this one from now on; its piece.
  std::uint16_t stand_at(NodeId id) {
    const Node& n = b_.graph.node(id);
    b_.scope = n.scope, b_.force_piece = n.piece;
    return n.piece;
  }

  // From the gradients of a node's results to those of its operands.
  void through(NodeId id) {
    const std::uint16_t piece = stand_at(id);
    std::vector<Tensor> in, out, grad;
    for (Value v : values_of(b_.graph, id)) out.push_back({&b_, v});
    for (const Tensor& t : out) {
      const auto it = incoming_.find(t.value);
      grad.push_back(it == incoming_.end() ? Tensor() : total(it->second));
    }
    if (std::ranges::none_of(grad, [](const Tensor& t) { return bool(t); })) return;
    const Op& op = *b_.graph.node(id).op;
    const std::vector<Value> operands = b_.graph.node(id).operands;
    const auto asked = std::make_unique<bool[]>(operands.size());
    for (std::size_t k = 0; k < operands.size(); ++k) {
      in.push_back({&b_, operands[k]});
      asked[k] = wanted(operands[k]);
    }
    if (!op.vjp) throw Error(op.name, "has no gradient").hint("wrap it in stop_gradient, or give the op a vjp");
    const std::vector<Tensor> back =
        op.vjp({b_, id, in, out, grad, std::span<const bool>(asked.get(), operands.size())});
    STRETTO_ASSERT(back.size() == operands.size(), "a vjp returns one gradient per operand");
    for (std::size_t k = 0; k < operands.size(); ++k)
      if (asked[k] && back[k]) incoming_[operands[k]].push_back({fit(back[k], b_.graph.type(operands[k])), piece});
  }

  Builder& b_;
  const Backward guard_;
  IdVector<NodeId, char> matters_;  // of the forward nodes
  std::map<Value, std::vector<Contribution>> incoming_;
};

}  // namespace

std::vector<Gradient> differentiate(Builder& b, std::span<const Root> roots, std::span<const Tensor> wrt) {
  Differentiation d(b, wrt);
  for (const Root& r : roots) d.start(r);
  d.go_back();
  std::vector<Gradient> all;
  for (const Tensor& t : wrt) d.collect(t, all);
  return all;
}

}  // namespace stretto
