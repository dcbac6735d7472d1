// A group is a set of pointwise nodes over the same dims that can be evaluated in one pass: no path leads out of it and
// back in.
#include "stretto/fuse/inner/group.h"

#include <algorithm>
#include <map>

#include "stretto/ir/ids.h"
#include "stretto/ops/constant.h"
#include "stretto/ops/fused.h"
#include "stretto/ops/ops.h"

namespace stretto {
namespace {

using GroupId = Id<struct GroupTag>;
using Nodes = std::vector<NodeId>;  // ascending

bool contains(const auto& list, const auto& x) { return std::ranges::find(list, x) != list.end(); }

class Grouping {
 public:
  explicit Grouping(const Graph& graph, const std::vector<Value>& alone)
      : g(graph), of(graph.nodes.size()), alone_(graph.nodes.size(), false), seen_(graph.nodes.size(), false) {
    for (Value v : alone) alone_[v.node] = true;
    for (NodeId id : node_ids(g)) {
      if (!g.node(id).op->pointwise || g.node(id).op->own_memory) continue;
      if (!alone_[id]) join_operands(id);
      if (!of[id]) of[id] = members.push_back({id});
    }
  }

  bool is_constant(Value v) const { return g.node(v).op->leaf == Leaf::constant; }

  const Graph& g;
  IdVector<NodeId, std::optional<GroupId>> of;
  IdVector<GroupId, Nodes> members;

 private:
  // The node joins the group of the first operand that takes it; those of the others join, too, where they can.
  void join_operands(NodeId id) {
    for (Value v : g.node(id).operands) {
      const std::optional<GroupId> other = of[v.node], mine = of[id];
      if (!other || other == mine || alone_[v.node] || g.type(v).dims != g.node(id).results[0].dims) continue;
      if (mine) {
        merge(*mine, *other);
      } else if (fits(members[*other], {id}) && free_of({id}, *other, {})) {
        of[id] = other;
        members[*other].push_back(id);
      }
    }
  }

  void merge(GroupId into, GroupId from) {
    Nodes &a = members[into], &b = members[from];
    if (!fits(a, b) || !free_of(b, into, from) || !free_of(a, from, into)) return;
    for (NodeId m : b) of[m] = into;
    a.insert(a.end(), b.begin(), b.end());
    std::ranges::sort(a);
    b.clear();
  }

  bool fits(const Nodes& a, const Nodes& b) const {
    std::vector<Value> outside;
    for (const Nodes* nodes : {&a, &b})
      for (NodeId m : *nodes)
        for (Value v : g.node(m).operands)
          if (!contains(a, v.node) && !contains(b, v.node) && !contains(outside, v)) outside.push_back(v);
    return a.size() + b.size() + outside.size() <= fused_registers;
  }

  // No operand of `nodes` from outside of `group` and `own` needs `group`.
  bool free_of(const Nodes& nodes, GroupId group, std::optional<GroupId> own) {
    for (NodeId n : nodes)
      for (Value v : g.node(n).operands) {
        const std::optional<GroupId> o = of[v.node];
        if (o && (o == group || o == own)) continue;
        if (needs(v.node, group)) return false;
      }
    return true;
  }

  // Does `from` need, through nodes and whole groups, something in `target`?
  bool needs(NodeId from, GroupId target) {
    Nodes stack{from};
    seen_.assign(g.nodes.size(), false);
    const auto push = [&](NodeId n) {
      if (!seen_[n]) seen_[n] = true, stack.push_back(n);
    };
    while (!stack.empty()) {
      const NodeId n = stack.back();
      const std::optional<GroupId> group = of[n];
      stack.pop_back();
      if (group == target) return true;
      if (group)
        for (NodeId m : members[*group]) push(m);
      for (Value v : g.node(n).operands) push(v.node);
    }
    return false;
  }

  IdVector<NodeId, bool> alone_, seen_;
};

// The `fused` node of a group while it is written.
class FusedNode {
 public:
  FusedNode(const Grouping& groups, const std::map<Value, Value>& at, const DimSet& space)
      : groups_(groups), g_(groups.g), at_(at) {
    attrs_.space = space;
  }

  // Which result of the node it is, if it is read outside.
  std::optional<std::uint8_t> add(NodeId member, bool outside) {
    const Node& n = g_.node(member);
    const Value v{member, 0};
    std::vector<i64> args;
    for (Value o : n.operands) args.push_back(argument(o));
    attrs_.args.insert(attrs_.args.end(), args.begin(), args.end());
    add_step(v, std::string(n.op->name), std::ssize(args), 0);
    if (!outside) return {};
    attrs_.results.push_back(std::ssize(attrs_.steps) - 1);
    node_.results.push_back(n.results[0]);
    return attrs_.results.size() - 1;
  }

  Node finish() && {
    for (i64& arg : attrs_.args)
      if (arg < 0) arg = std::ssize(node_.operands) - 1 - arg;
    node_.attrs = std::move(attrs_);
    return std::move(node_);
  }

 private:
  i64 argument(Value v) {
    if (const auto it = step_.find(v); it != step_.end()) return it->second;
    if (groups_.is_constant(v)) return add_step(v, "constant", 0, g_.node(v).attrs.as<ConstantAttrs>().value);
    const auto [it, fresh] = operand_.try_emplace(v, std::ssize(node_.operands));
    if (fresh) node_.operands.push_back(at_.at(v));
    return it->second;
  }
  i64 add_step(Value v, std::string name, i64 count, double value) {
    attrs_.steps.push_back(std::move(name));
    attrs_.counts.push_back(count);
    attrs_.values.push_back(value);
    attrs_.dtypes.push_back(g_.type(v).dtype);
    return step_[v] = -std::ssize(attrs_.steps);
  }

  const Grouping& groups_;
  const Graph& g_;
  const std::map<Value, Value>& at_;  // in the new graph
  Node node_{.op = &fused_op};
  FusedAttrs attrs_;
  std::map<Value, i64> operand_, step_;  // step k is written -1-k until the number of operands is known
};

// Writes the graph anew, every group as one node.
class Rewriter {
 public:
  explicit Rewriter(const Grouping& groups)
      : groups_(groups), g_(groups.g), done_(g_.nodes.size(), false), outside_(g_.nodes.size(), false) {
    for (Value v : g_.outputs) outside_[v.node] = true;
    for (NodeId id : node_ids(g_))
      for (Value v : g_.node(id).operands)
        if (!groups.of[id] || groups.of[v.node] != groups.of[id]) outside_[v.node] = true;
    out_.dims = g_.dims;
    out_.scopes = g_.scopes;
  }

  Graph run() {
    for (NodeId id : node_ids(g_))  // first of all: their order numbers the arguments
      if (g_.node(id).op->leaf == Leaf::argument) emit(id);
    for (NodeId id : node_ids(g_))
      if (g_.node(id).op->leaf != Leaf::constant) emit(id);
    for (Value v : g_.outputs) {
      emit(v.node);
      out_.outputs.push_back(at_.at(v));
    }
    return std::move(out_);
  }

 private:
  void emit(NodeId id) {
    if (done_[id]) return;
    const std::optional<GroupId> group = groups_.of[id];
    const Nodes nodes = group ? groups_.members[*group] : Nodes{id};
    for (NodeId m : nodes) done_[m] = true;
    bool constants = false;
    for (NodeId m : nodes)
      for (Value v : g_.node(m).operands) {
        if (group && groups_.is_constant(v))
          constants = true;
        else if (!group || groups_.of[v.node] != group)
          emit(v.node);
      }
    if (nodes.size() == 1 && !constants)
      single(id);
    else
      fused(nodes);
  }

  void single(NodeId id) {
    Node n = g_.node(id);
    for (Value& v : n.operands) v = at_.at(v);
    out_.nodes.push_back(std::move(n));
    for (Value v : values_of(g_, id)) at_[v] = {last_node(out_), v.result};
  }

  void fused(const Nodes& nodes) {
    FusedNode n(groups_, at_, g_.node(nodes[0]).results[0].dims);
    std::map<Value, Value> results;
    for (NodeId m : nodes)
      if (const auto result = n.add(m, outside_[m])) results[{m, 0}] = {NodeId(out_.nodes.size()), *result};
    at_.merge(results);
    out_.nodes.push_back(std::move(n).finish());
  }

  const Grouping& groups_;
  const Graph& g_;
  IdVector<NodeId, bool> done_, outside_;  // outside: the node's result is read outside of its group
  std::map<Value, Value> at_;
  Graph out_;
};

}  // namespace

Graph group_pointwise(const Graph& g, const std::vector<Value>& alone) { return Rewriter(Grouping(g, alone)).run(); }

}  // namespace stretto
