#include "stretto/autodiff/autodiff.h"

#include <algorithm>
#include <map>
#include <memory>

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

}  // namespace

std::vector<Gradient> differentiate(Builder& b, std::span<const Root> roots, std::span<const Tensor> wrt) {
  const Backward guard(b);
  const std::size_t forward = b.graph.nodes.size();
  std::map<Value, std::size_t> asked;
  for (std::size_t i = 0; i < wrt.size(); ++i) asked[wrt[i].value] = i;

  // A node matters if a gradient can flow through it to something asked for.
  std::vector<char> matters(forward, 0);
  for (std::size_t i = 0; i < forward; ++i) {
    const Node& n = b.graph.nodes[i];
    for (std::uint8_t r = 0; r < n.results.size(); ++r)
      if (asked.contains({NodeId(i), r})) matters[i] = 1;
    if (n.op->no_gradient) continue;
    for (Value v : n.operands) matters[i] |= matters[v.node.value] && is_float(b.graph.type(v).dtype);
  }

  std::map<Value, std::vector<Contribution>> incoming;
  for (const Root& r : roots) {
    const Node& n = b.graph.node(r.value.value);
    if (!matters[r.value.value.node.value]) continue;
    b.force_piece = n.piece;
    b.scope = n.scope;
    incoming[r.value.value].push_back({fit(r.seed, b.graph.type(r.value.value)), n.piece});
  }

  for (std::size_t i = forward; i-- > 0;) {
    if (!matters[i]) continue;
    const NodeId id(i);
    const Op& op = *b.graph.nodes[i].op;
    if (op.no_gradient) continue;
    const std::size_t results = b.graph.nodes[i].results.size();
    std::vector<Tensor> in, out, grad(results);
    bool any = false;
    b.scope = b.graph.nodes[i].scope;
    b.force_piece = b.graph.nodes[i].piece;
    for (std::uint8_t r = 0; r < results; ++r) {
      const Value v{id, r};
      out.push_back({&b, v});
      const auto it = incoming.find(v);
      if (it == incoming.end()) continue;
      grad[r] = total(it->second);
      any = true;
    }
    if (!any) continue;
    const std::vector<Value> operands = b.graph.nodes[i].operands;
    const auto wanted = std::make_unique<bool[]>(operands.size());
    for (std::size_t k = 0; k < operands.size(); ++k) {
      in.push_back({&b, operands[k]});
      wanted[k] = matters[operands[k].node.value] && is_float(b.graph.type(operands[k]).dtype);
    }
    if (!op.vjp) throw Error(op.name, "has no gradient").hint("wrap it in stop_gradient, or give the op a vjp");
    const std::vector<Tensor> back =
        op.vjp({b, id, in, out, grad, std::span<const bool>(wanted.get(), operands.size())});
    STRETTO_ASSERT(back.size() == operands.size(), "a vjp returns one gradient per operand");
    for (std::size_t k = 0; k < operands.size(); ++k) {
      if (!wanted[k] || !back[k]) continue;
      const Type type = b.graph.type(operands[k]);
      incoming[operands[k]].push_back({fit(back[k], type), b.graph.nodes[i].piece});
    }
  }

  std::vector<Gradient> all;
  for (const Tensor& t : wrt) {
    const auto it = incoming.find(t.value);
    if (it == incoming.end()) continue;
    b.scope = b.graph.node(t.value).scope;
    std::map<std::uint16_t, std::vector<Contribution>> by_piece;
    for (const Contribution& c : it->second) by_piece[c.piece].push_back(c);
    for (auto& [piece, parts] : by_piece) {
      b.force_piece = piece;
      all.push_back({t, piece, total(parts)});
    }
  }
  return all;
}

}  // namespace stretto
