// Grouping of pointwise nodes. A group is a set of pointwise nodes over the same dims that can be evaluated in one
// pass: no path leads out of it and back in.
#include <algorithm>
#include <functional>
#include <map>

#include "stretto/fuse/calls.h"
#include "stretto/ops/constant.h"
#include "stretto/ops/fused.h"
#include "stretto/ops/ops.h"

namespace stretto {
namespace {

constexpr int none = -1;
constexpr std::size_t most_registers = 40;  // of the kernel: operands, constants and steps of a group together

class Grouping {
 public:
  explicit Grouping(const Graph& graph, const std::vector<Value>& alone)
      : g(graph), of(graph.nodes.size(), none), seen_(graph.nodes.size(), 0) {
    std::vector<char> solo(g.nodes.size(), 0);
    for (Value v : alone) solo[v.node.value] = 1;
    for (std::size_t i = 0; i < g.nodes.size(); ++i) {
      const Node& n = g.nodes[i];
      if (!n.op->pointwise || n.op->own_memory) continue;
      int mine = none;
      for (Value v : n.operands) {
        const int other = of[v.node.value];
        if (solo[i] || other == none || other == mine || solo[v.node.value]) continue;
        if (g.node(v).results[0].dims != n.results[0].dims) continue;
        if (mine == none) {
          if (!fits(members[std::size_t(other)], {int(i)}) || !free_of({int(i)}, other, none)) continue;
          of[i] = mine = other;
          members[std::size_t(mine)].push_back(int(i));
        } else {
          merge(mine, other);
        }
      }
      if (mine != none) continue;
      of[i] = int(members.size());
      members.push_back({int(i)});
    }
  }

  bool is_constant(Value v) const { return g.node(v).op->leaf == Leaf::constant; }

  const Graph& g;
  std::vector<int> of;                    // node -> group
  std::vector<std::vector<int>> members;  // group -> nodes, ascending

 private:
  void merge(int into, int from) {
    auto &a = members[std::size_t(into)], &b = members[std::size_t(from)];
    if (!fits(a, b) || !free_of(b, into, from) || !free_of(a, from, into)) return;
    for (int m : b) of[std::size_t(m)] = into;
    a.insert(a.end(), b.begin(), b.end());
    std::sort(a.begin(), a.end());
    b.clear();
  }

  bool fits(const std::vector<int>& a, const std::vector<int>& b) const {
    std::vector<Value> outside;
    const auto inside = [&](int node) {
      return std::find(a.begin(), a.end(), node) != a.end() || std::find(b.begin(), b.end(), node) != b.end();
    };
    for (const auto* nodes : {&a, &b})
      for (int m : *nodes)
        for (Value v : g.nodes[std::size_t(m)].operands)
          if (!inside(int(v.node.value)) && std::find(outside.begin(), outside.end(), v) == outside.end())
            outside.push_back(v);
    return a.size() + b.size() + outside.size() <= most_registers;
  }

  // No operand of `nodes` from outside of `group` and `own` needs `group`.
  bool free_of(const std::vector<int>& nodes, int group, int own) {
    for (int n : nodes)
      for (Value v : g.nodes[std::size_t(n)].operands) {
        const int o = of[v.node.value];
        if (o == group || (own != none && o == own)) continue;
        if (needs(int(v.node.value), group)) return false;
      }
    return true;
  }

  // Does `from` need, through nodes and whole groups, something in `target`?
  bool needs(int from, int target) {
    std::vector<int> stack{from};
    std::fill(seen_.begin(), seen_.end(), 0);
    const auto push = [&](int node) {
      if (!seen_[std::size_t(node)]) seen_[std::size_t(node)] = 1, stack.push_back(node);
    };
    while (!stack.empty()) {
      const int n = stack.back(), group = of[std::size_t(n)];
      stack.pop_back();
      if (group == target) return true;
      if (group != none)
        for (int m : members[std::size_t(group)]) push(m);
      for (Value v : g.nodes[std::size_t(n)].operands) push(int(v.node.value));
    }
    return false;
  }

  std::vector<char> seen_;
};

// Writes the graph anew, every group as one node.
class Rewriter {
 public:
  explicit Rewriter(const Grouping& groups)
      : groups_(groups), g_(groups.g), done_(g_.nodes.size(), 0), outside_(g_.nodes.size(), 0) {
    for (Value v : g_.outputs) outside_[v.node.value] = 1;
    for (std::size_t i = 0; i < g_.nodes.size(); ++i)
      for (Value v : g_.nodes[i].operands)
        if (groups.of[i] == none || groups.of[v.node.value] != groups.of[i]) outside_[v.node.value] = 1;
    out_.dims = g_.dims;
    out_.scopes = g_.scopes;
  }

  Graph run() {
    for (std::size_t i = 0; i < g_.nodes.size(); ++i)  // arguments are numbered by the order of their nodes: keep it
      if (g_.nodes[i].op->leaf == Leaf::argument) emit(i);
    for (std::size_t i = 0; i < g_.nodes.size(); ++i)
      if (g_.nodes[i].op->leaf != Leaf::constant) emit(i);
    for (Value v : g_.outputs) {
      emit(v.node.value);
      out_.outputs.push_back(at_.at(v));
    }
    return std::move(out_);
  }

 private:
  void emit(std::size_t i) {
    if (done_[i]) return;
    const int group = groups_.of[i];
    const std::vector<int> nodes = group == none ? std::vector<int>{int(i)} : groups_.members[std::size_t(group)];
    for (int m : nodes) done_[std::size_t(m)] = 1;
    bool constants = false;
    for (int m : nodes)
      for (Value v : g_.nodes[std::size_t(m)].operands) {
        if (group != none && groups_.is_constant(v))
          constants = true;
        else if (group == none || groups_.of[v.node.value] != group)
          emit(v.node.value);
      }
    if (group == none || (nodes.size() == 1 && !constants))
      single(i);
    else
      fused(nodes);
  }

  void single(std::size_t i) {
    Node n = g_.nodes[i];
    for (Value& v : n.operands) v = at_.at(v);
    const NodeId id{std::uint32_t(out_.nodes.size())};
    for (std::size_t r = 0; r < n.results.size(); ++r)
      at_[{NodeId{std::uint32_t(i)}, std::uint8_t(r)}] = {id, std::uint8_t(r)};
    out_.nodes.push_back(std::move(n));
  }

  void fused(const std::vector<int>& nodes) {
    FusedAttrs a{.space = g_.nodes[std::size_t(nodes[0])].results[0].dims};
    Node n{.op = &fused_op};
    std::map<Value, i64> argument, step;  // step k is written -1-k until the number of operands is known
    const auto add_step = [&](Value v, std::string name, i64 count, double value) {
      a.steps.push_back(std::move(name));
      a.counts.push_back(count);
      a.values.push_back(value);
      a.dtypes.push_back(g_.type(v).dtype);
      return step[v] = -i64(a.steps.size());
    };
    const auto operand = [&](Value v) -> i64 {
      if (const auto it = step.find(v); it != step.end()) return it->second;
      if (groups_.is_constant(v)) return add_step(v, "constant", 0, g_.node(v).attrs.as<ConstantAttrs>().value);
      const auto [it, fresh] = argument.try_emplace(v, i64(n.operands.size()));
      if (fresh) n.operands.push_back(at_.at(v));
      return it->second;
    };
    for (int m : nodes) {
      const Node& member = g_.nodes[std::size_t(m)];
      const Value v{NodeId{std::uint32_t(m)}, 0};
      std::vector<i64> args;
      for (Value o : member.operands) args.push_back(operand(o));
      a.args.insert(a.args.end(), args.begin(), args.end());
      add_step(v, std::string(member.op->name), i64(args.size()), 0);
      if (!outside_[std::size_t(m)]) continue;
      at_[v] = {NodeId{std::uint32_t(out_.nodes.size())}, std::uint8_t(a.results.size())};
      a.results.push_back(i64(a.steps.size()) - 1);
      n.results.push_back(member.results[0]);
    }
    for (i64& arg : a.args)
      if (arg < 0) arg = i64(n.operands.size()) - 1 - arg;
    n.attrs = std::move(a);
    out_.nodes.push_back(std::move(n));
  }

  const Grouping& groups_;
  const Graph& g_;
  std::vector<char> done_, outside_;  // outside: the node's result is read outside of its group
  std::map<Value, Value> at_;
  Graph out_;
};

}  // namespace

Graph group_pointwise(const Graph& g, const std::vector<Value>& alone) { return Rewriter(Grouping(g, alone)).run(); }

}  // namespace stretto
