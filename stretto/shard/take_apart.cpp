#include "stretto/shard/take_apart.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "stretto/base/text.h"
#include "stretto/ops/rename.h"

namespace stretto {
namespace {

std::string scope_of(const Graph& g, const Node& n) {
  const std::string& s = g.scopes[n.scope];
  return s.empty() ? "" : fmt::format(" in '{}'", s);
}

class Checker {
 public:
  Checker(const DimAxes& axes, std::vector<Fault>& faults) : axes_(axes), faults_(faults) {}

  // Two dims of one op's space on one axis. A rename's operand and result are two spaces.
  void space(const Graph& g, const Node& n, NodeId id) {
    std::vector<DimSet> spaces;
    if (n.op->layout_change) {
      spaces = {g.type(n.operands[0]).dims, n.results[0].dims};
    } else {
      spaces.emplace_back();
      for (Value v : n.operands) spaces[0] = joined(spaces[0], g.type(v).dims);
      for (const Type& t : n.results) spaces[0] = joined(spaces[0], t.dims);
      spaces[0] = joined(spaces[0], n.op->spread({g, n}).extra);
    }
    for (const DimSet& dims : spaces)
      for (std::size_t i = 0; i < dims.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
          if (const AxisMask both = axes_.mask(dims[i]) & axes_.mask(dims[j])) {
            const std::string &a = g.dim(dims[j]).name, &b = g.dim(dims[i]).name;
            const std::string axis = axes_.names(both)[0];
            if (!seen_.insert({std::string(n.op->name), a, b, axis}).second || ++pairs_[{a, b, axis}] > 2) continue;
            faults_.push_back(fault("layout", "map one of them elsewhere or rename it around this op",
                                    "dims '{}' and '{}' of {} ({}{}) both lie on axis '{}'", a, b, g.str({id, 0}),
                                    n.op->name, scope_of(g, n), axis));
          }
  }

  // True when the op has to be taken apart.
  bool serial(const Graph& g, const Node& n, NodeId id) {
    if (n.op->layout_change) return false;
    bool any = false;
    for (DimId d : n.op->spread({g, n}).serial) {
      if (!axes_.mask(d)) continue;
      any = true;
      if (n.op->decompose) continue;
      const std::string& name = g.dim(d).name;
      const std::string axis = join(axes_.names(axes_.mask(d)), ",");
      if (!seen_.insert({std::string(n.op->name), name, "", axis}).second) continue;
      faults_.push_back(fault("layout", "rename it before this op",
                              "dim '{}' is split over '{}' and must be whole here: {} ({}{})", name, axis,
                              g.str({id, 0}), n.op->name, scope_of(g, n)));
    }
    return any && n.op->decompose;
  }

 private:
  const DimAxes& axes_;
  std::vector<Fault>& faults_;
  std::set<std::tuple<std::string, std::string, std::string, std::string>> seen_;
  std::map<std::tuple<std::string, std::string, std::string>, int> pairs_;  // two examples of each tell enough
};

}  // namespace

std::vector<char> needed_nodes(const StepGraph& s) {
  const Graph& g = s.graph;
  std::vector<char> needed(g.nodes.size(), 0);
  for (const std::vector<Value>* list : {&s.params, &s.inputs, &s.scalars})
    for (Value v : *list) needed[v.node.value] = 1;  // they keep their numbers
  for (const StepGraph::Output& o : s.outputs) needed[o.value.node.value] = 1;
  for (const StepGraph::Grad& d : s.gradients) needed[d.value.node.value] = 1;
  for (std::size_t i = g.nodes.size(); i-- > 0;)
    if (needed[i])
      for (Value v : g.nodes[i].operands) needed[v.node.value] = 1;
  return needed;
}

StepGraph take_apart(const StepGraph& s, const DimAxes& axes, std::vector<Fault>& faults) {
  const Graph& g = s.graph;
  const std::vector<char> needed = needed_nodes(s);
  Checker check(axes, faults);
  Builder b;
  b.graph.dims = g.dims;
  b.graph.scopes = g.scopes;
  std::vector<std::vector<Value>> to(g.nodes.size());
  std::map<std::tuple<Value, u64, std::uint16_t, bool>, NodeId> renames;
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    if (!needed[i]) continue;
    const NodeId id{std::uint32_t(i)};
    Node n = g.nodes[i];
    const bool apart = check.serial(g, n, id);
    for (Value& v : n.operands) v = to[v.node.value][v.result];
    if (apart) {
      b.scope = n.scope, b.force_piece = n.piece, b.backward = n.backward;
      std::vector<Tensor> in;
      for (Value v : n.operands) in.push_back({&b, v});
      const std::size_t first = b.graph.nodes.size();
      for (const Tensor& t : n.op->decompose({g, g.nodes[i]}, in)) to[i].push_back(t.value);
      for (std::size_t k = first; k < b.graph.nodes.size(); ++k)
        check.space(b.graph, b.graph.nodes[k], NodeId{std::uint32_t(k)});
      continue;
    }
    check.space(g, g.nodes[i], id);
    NodeId at{std::uint32_t(b.graph.nodes.size())};
    if (n.op->layout_change) {
      const auto [known, fresh] = renames.try_emplace({n.operands[0], n.attrs.hash(), n.piece, n.backward}, at);
      at = known->second;
      if (fresh) b.graph.nodes.push_back(std::move(n));
    } else {
      b.graph.nodes.push_back(std::move(n));
    }
    for (std::size_t r = 0; r < g.nodes[i].results.size(); ++r) to[i].push_back({at, std::uint8_t(r)});
  }
  const auto moved = [&](Value v) { return to[v.node.value][v.result]; };
  StepGraph out{.graph = std::move(b.graph)};
  for (Value v : s.params) out.params.push_back(moved(v));
  for (Value v : s.inputs) out.inputs.push_back(moved(v));
  for (Value v : s.scalars) out.scalars.push_back(moved(v));
  for (StepGraph::Output o : s.outputs) o.value = moved(o.value), out.outputs.push_back(std::move(o));
  for (StepGraph::Grad d : s.gradients) d.value = moved(d.value), out.gradients.push_back(d);
  return out;
}

}  // namespace stretto
