#include "stretto/shard/inner/take_apart.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "stretto/base/text.h"
#include "stretto/ops/cast.h"
#include "stretto/ops/rename.h"
#include "stretto/shard/inner/grouped.h"

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
  void space(const Graph& g, NodeId id) {
    const Node& n = g.node(id);
    if (n.op->layout_change) {
      each_on_its_own(g, id, g.type(n.operands[0]).dims);
      each_on_its_own(g, id, n.results[0].dims);
      return;
    }
    if (n.op->regroups != Regroups::none) return;  // as a rename's
    DimSet space;
    for (Value v : n.operands) space = joined(space, g.type(v).dims);
    for (const Type& t : n.results) space = joined(space, t.dims);
    each_on_its_own(g, id, joined(space, n.op->spread({g, n}).extra));
  }

  // True when the op has to be taken apart.
  bool serial(const Graph& g, NodeId id) {
    const Node& n = g.node(id);
    if (n.op->layout_change) return false;
    bool any = false;
    for (DimId d : n.op->spread({g, n}).serial) {
      if (!axes_.set(d)) continue;
      any = true;
      if (n.op->decompose) continue;
      const std::string& name = g.dim(d).name;
      const std::vector<std::string> over = axes_.names(axes_.set(d));
      const std::string axis = join(over, ",");
      if (!seen_.insert({std::string(n.op->name), name, "", axis}).second) continue;
      faults_.push_back(fault("layout", "rename it before this op",
                              "dim '{}' is split over '{}' and must be whole here: {} ({}{})", name, axis,
                              g.str({id, 0}), n.op->name, scope_of(g, n))
                            .about(settings_of({name}, over)));
    }
    return any && n.op->decompose;
  }

 private:
  void each_on_its_own(const Graph& g, NodeId id, const DimSet& dims) {
    const Node& n = g.node(id);
    for (std::size_t i = 0; i < dims.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (const AxisSet both = axes_.set(dims[i]) & axes_.set(dims[j]);
            both && !grouped::paired(g, dims[i], dims[j])) {
          const std::string &a = g.dim(dims[j]).name, &b = g.dim(dims[i]).name;
          const std::string axis = axes_.names(both)[0];
          if (!seen_.insert({std::string(n.op->name), a, b, axis}).second || ++pairs_[{a, b, axis}] > 2) continue;
          faults_.push_back(fault("layout", "map one of them elsewhere or rename it around this op",
                                  "dims '{}' and '{}' of {} ({}{}) both lie on axis '{}'", a, b, g.str({id, 0}),
                                  n.op->name, scope_of(g, n), axis)
                                .about(settings_of({a, b}, std::vector{axis})));
        }
  }

  const DimAxes& axes_;
  std::vector<Fault>& faults_;
  std::set<std::tuple<std::string, std::string, std::string, std::string>> seen_;
  std::map<std::tuple<std::string, std::string, std::string>, int> pairs_;  // two examples of each tell enough
};

// The step's graph once more, node by node.
class Rebuild {
 public:
  Rebuild(const StepGraph& s, const DimAxes& axes, std::vector<Fault>& faults)
      : from_(s), g_(s.graph), check_(axes, faults), to_(g_.nodes.size()) {
    builder_.graph.dims = g_.dims;
    builder_.graph.scopes = g_.scopes;
  }

  void add(NodeId id) {
    if (check_.serial(g_, id)) return add_parts(id);
    check_.space(g_, id);
    Node n = g_.node(id);
    for (Value& v : n.operands) v = moved(v);
    const std::size_t results = n.results.size();
    const NodeId at = n.op->layout_change ? add_rename(std::move(n)) : append(std::move(n));
    for (std::size_t r = 0; r < results; ++r) {
      to_[id].push_back({at});
      to_[id].back().result = r;
    }
  }

  StepGraph finish() {
    StepGraph out{.graph = std::move(builder_.graph), .segments = from_.segments};
    for (Value v : from_.params) out.params.push_back(moved(v));
    for (Value v : from_.inputs) out.inputs.push_back(moved(v));
    for (Value v : from_.scalars) out.scalars.push_back(moved(v));
    for (StepGraph::Output o : from_.outputs) o.value = moved(o.value), out.outputs.push_back(std::move(o));
    for (StepGraph::Grad d : from_.gradients) d.value = moved(d.value), out.gradients.push_back(d);
    return out;
  }

 private:
  Value moved(Value v) const { return to_[v.node][v.result]; }

  NodeId append(Node n) {
    builder_.graph.nodes.push_back(std::move(n));
    return NodeId(builder_.graph.nodes.size() - 1);
  }

  static Tensor wide_of(Tensor t) { return cast(t, wide(t.dtype())); }

  // What the op is made of, in its place.
  void add_parts(NodeId id) {
    const Node& n = g_.node(id);
    builder_.scope = n.scope, builder_.force_piece = n.piece, builder_.backward = n.backward;
    std::vector<Tensor> in;
    const std::size_t first = builder_.graph.nodes.size();
    for (Value v : n.operands) in.push_back(wide_of({&builder_, moved(v)}));
    for (const Tensor& t : n.op->decompose({g_, n}, in))  // in f32 where the op is in bf16
      to_[id].push_back(cast(t, n.results[to_[id].size()].dtype).value);
    for (std::size_t k = first; k < builder_.graph.nodes.size(); ++k) check_.space(builder_.graph, NodeId(k));
  }

  // Equal renames of one piece and phase are one.
  NodeId add_rename(Node n) {
    const auto [known, fresh] = renames_.try_emplace({n.operands[0], n.attrs.hash(), n.piece, n.backward});
    if (fresh) known->second = append(std::move(n));
    return known->second;
  }

  const StepGraph& from_;
  const Graph& g_;
  Checker check_;
  Builder builder_;
  IdVector<NodeId, std::vector<Value>> to_;  // per node: its results in the new graph
  std::map<std::tuple<Value, u64, std::uint16_t, bool>, NodeId> renames_;
};

}  // namespace

IdVector<NodeId, bool> needed_nodes(const StepGraph& s) {
  const Graph& g = s.graph;
  IdVector<NodeId, bool> needed(g.nodes.size());
  for (const auto& list : {s.params.list(), s.inputs.list(), s.scalars.list()})
    for (Value v : list) needed[v.node] = true;  // they keep their numbers
  for (const StepGraph::Output& o : s.outputs) needed[o.value.node] = true;
  for (const StepGraph::Grad& d : s.gradients) needed[d.value.node] = true;
  for (std::size_t i = g.nodes.size(); i-- > 0;)
    if (needed[NodeId(i)])
      for (Value v : g.nodes[i].operands) needed[v.node] = true;
  return needed;
}

StepGraph take_apart(const StepGraph& s, const DimAxes& axes, std::vector<Fault>& faults) {
  const IdVector<NodeId, bool> needed = needed_nodes(s);
  Rebuild rebuild(s, axes, faults);
  for (NodeId id : needed.ids())
    if (needed[id]) rebuild.add(id);
  return rebuild.finish();
}

}  // namespace stretto
