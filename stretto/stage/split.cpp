#include "stretto/stage/split.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "stretto/base/text.h"
#include "stretto/ops/copy.h"
#include "stretto/ops/input.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/param.h"
#include "stretto/stage/owners.h"

namespace stretto {
namespace {

constexpr std::uint32_t nowhere = ~0u;

// What every task computes: found from what is asked for, so that nothing is made or kept that nobody reads.
class Demand {
 public:
  Demand(const StepGraph& s, const Owners& owners) : g_(s.graph), owners_(owners), nodes_(owners.tasks()) {
    for (const StepGraph::Output& o : s.outputs) need(o.value, task_of(o));
    for (const StepGraph::Grad& d : s.gradients) need(d.value, owners.task(Part::W, d.piece));
    while (!open_.empty()) {
      const auto [v, task] = open_.back();
      open_.pop_back();
      look(v, task);
    }
  }
  std::uint32_t task_of(const StepGraph::Output& o) const {
    return o.count ? Owners::counts : owners_.task(Part::F, g_.node(o.value).piece);
  }
  const std::set<std::uint32_t>& nodes(std::uint32_t task) const { return nodes_[task]; }

 private:
  void need(Value v, std::uint32_t task) { open_.push_back({v, task}); }
  void look(Value v, std::uint32_t reader) {
    if (owners_.source(v) || owners_.free(v)) return;
    if (!owners_.everywhere(v)) {
      const std::uint32_t maker = owners_.of(v, reader);
      if (!nodes_[maker].insert(v.node.value).second) return;
      reader = maker;
    }
    for (Value o : g_.node(v).operands) need(o, reader);
  }

  const Graph& g_;
  const Owners& owners_;
  std::vector<std::set<std::uint32_t>> nodes_;  // per task, ascending
  std::vector<std::pair<Value, std::uint32_t>> open_;
};

// One task's body while it is being built.
class BodyBuilder {
 public:
  BodyBuilder(const StepGraph& s, const Owners& owners, std::uint32_t task) : step_(s), owners_(owners), id_(task) {
    body_.dims = s.graph.dims;
    this->task.part = owners.part(task);
    this->task.piece = owners.piece(task);
  }

  // The value in the body that stands for `v`; sources become arguments, free nodes and views are made again here.
  Value local(Value v) {
    if (owners_.source(v) || (!owners_.everywhere(v) && owners_.of(v, id_) != id_)) return argument(v);
    return {place(v.node), v.result};
  }

  NodeId place(NodeId id) {
    if (const auto it = nodes_.find(id.value); it != nodes_.end()) return it->second;
    Node n = step_.graph.node(id);
    for (Value& v : n.operands) v = local(v);
    n.scope = 0, n.piece = 0, n.backward = false;
    if (n.op->key) {
      task.keys.push_back(hash_of(std::string_view(n.op->key(n.attrs))));
      n.attrs = n.op->rekeyed(n.attrs, std::to_string(task.keys.size() - 1));
    }
    body_.nodes.push_back(std::move(n));
    return nodes_[id.value] = NodeId{std::uint32_t(body_.nodes.size() - 1)};
  }

  // A result must have memory of its own: arguments, views and values that already are results are copied.
  void output(Value v, Binding where) {
    Value at = local(v);
    const Node& n = body_.node(at);
    if (n.op->leaf == Leaf::argument || n.op->view ||
        std::find(body_.outputs.begin(), body_.outputs.end(), at) != body_.outputs.end()) {
      const Type type = body_.type(at);
      body_.nodes.push_back({.op = &copy_op, .operands = {at}, .results = {type}});
      at = {NodeId{std::uint32_t(body_.nodes.size() - 1)}, 0};
    }
    body_.outputs.push_back(at);
    task.outputs.push_back(where);
  }

  Graph finish() { return std::move(body_); }
  bool empty() const { return body_.outputs.empty(); }
  std::vector<std::pair<Value, std::uint32_t>> foreign;  // values of other tasks, with their argument's position
  Task task;

 private:
  Value argument(Value v) {
    if (const auto it = arguments_.find(v); it != arguments_.end()) return it->second;
    const Node& n = step_.graph.node(v);
    const Type& type = step_.graph.type(v);
    const std::uint32_t position = std::uint32_t(task.inputs.size());
    Binding where;
    const auto among = [&](const std::vector<Value>& list, Place place) {
      const auto it = std::find(list.begin(), list.end(), v);
      if (it == list.end()) return false;
      where = {place, std::uint32_t(it - list.begin())};
      return true;
    };
    if (n.op->leaf == Leaf::param)
      STRETTO_ASSERT(among(step_.params, Place::param), "an undeclared parameter");
    else if (n.op->leaf == Leaf::argument)
      STRETTO_ASSERT(among(step_.inputs, Place::input) || among(step_.scalars, Place::scalar), "an undeclared input");
    else
      foreign.push_back({v, position});
    task.inputs.push_back(where);
    // Arguments stand before everything that uses them: a body is built in topological order.
    body_.nodes.push_back(
        {.op = &input_op,
         .attrs = InputAttrs{.name = std::to_string(position), .dtype = type.dtype, .dims = type.dims},
         .results = {type}});
    return arguments_[v] = {NodeId{std::uint32_t(body_.nodes.size() - 1)}, 0};
  }

  const StepGraph& step_;
  const Owners& owners_;
  std::uint32_t id_;
  Graph body_;
  std::unordered_map<std::uint32_t, NodeId> nodes_;
  std::map<Value, Value> arguments_;
};

void check(const StepGraph& s, const Owners& owners, const SplitOptions& o) {
  for (const StepGraph::Output& out : s.outputs)
    if (out.count && !owners.free(out.value))
      throw Error("loss", "the count of '{}' depends on parameters: {}", out.name, s.graph.str(out.value))
          .hint("counts are needed before the first backward; make them from inputs only");
  const std::size_t pieces = std::size_t(owners.pieces());
  STRETTO_ASSERT(
      (o.recompute.empty() || o.recompute.size() == pieces) && (o.stage_of.empty() || o.stage_of.size() == pieces),
      "options are given per piece");
}

// "h.3/contract(qkv){batch=8 ...}": parameters tell apart what one scope makes with one op.
std::string readable(const Graph& g, Value v) {
  const Node& n = g.node(v);
  const std::string& scope = g.scopes[n.scope];
  std::vector<std::string> params;
  for (Value o : n.operands) {
    if (g.node(o).op->leaf != Leaf::param) continue;
    std::string name = g.node(o).attrs.as<ParamAttrs>().name;
    if (name.starts_with(scope + ".")) name = name.substr(scope.size() + 1);
    params.push_back(std::move(name));
  }
  return fmt::format("{}{}{}{}{}{}{}", n.backward ? "d " : "", scope, scope.empty() ? "" : "/", n.op->name,
                     n.results.size() > 1 ? fmt::format(":{}", v.result) : "",
                     params.empty() ? "" : "(" + join(params, ", ") + ")", g.str(g.type(v)));
}

}  // namespace

std::shared_ptr<const Graph> BodyPool::share(Graph g) {
  const u64 h = g.hash();
  for (const auto& [known, body] : known_)
    if (known == h) return body;
  known_.push_back({h, std::make_shared<const Graph>(std::move(g))});
  return known_.back().second;
}

Step split(const StepGraph& s, const SplitOptions& options) {
  const Owners owners(s, options);
  check(s, owners, options);
  const Demand demand(s, owners);
  Step out;
  out.dims = s.graph.dims;
  for (Value v : s.params) out.params.push_back(s.graph.type(v));
  for (Value v : s.inputs) out.inputs.push_back(s.graph.type(v));
  for (Value v : s.scalars) out.scalars.push_back(s.graph.type(v));
  out.pieces = owners.pieces();

  std::vector<BodyBuilder> bodies;
  for (std::uint32_t t = 0; t < owners.tasks(); ++t) {
    bodies.emplace_back(s, owners, t);
    for (std::uint32_t node : demand.nodes(t)) bodies[t].place(NodeId{node});
  }
  for (const StepGraph::Output& o : s.outputs) {
    const Type& type = s.graph.type(o.value);
    bodies[demand.task_of(o)].output(o.value, {Place::output, std::uint32_t(out.outputs.size())});
    out.outputs.push_back({o.name, type, s.graph.bytes(type), o.count});
  }
  std::vector<StepGraph::Grad> gradients = s.gradients;
  std::stable_sort(gradients.begin(), gradients.end(), [](const auto& x, const auto& y) {
    return std::pair(x.param, x.piece) < std::pair(y.param, y.piece);
  });
  for (const StepGraph::Grad& g : gradients) {
    bodies[owners.task(Part::W, g.piece)].output(g.value, {Place::gradient, std::uint32_t(out.accumulators.size())});
    out.accumulators.push_back({.param = g.param, .piece = g.piece, .type = s.graph.type(g.value)});
  }

  // Values that cross from one task to another; made again, a value is another one.
  std::map<std::pair<Value, std::uint32_t>, std::uint32_t> crossing;
  for (std::uint32_t t = 0; t < bodies.size(); ++t)
    for (const auto& [v, position] : bodies[t].foreign) {
      const std::uint32_t maker = owners.of(v, t);
      const auto [it, fresh] = crossing.try_emplace({v, maker}, std::uint32_t(out.values.size()));
      if (fresh) {
        const Type& type = s.graph.type(v);
        out.values.push_back(
            {.type = type, .bytes = s.graph.bytes(type), .producer = maker, .name = readable(s.graph, v)});
      }
      out.values[it->second].consumers.push_back(t);
      bodies[t].task.inputs[position] = {Place::value, it->second};
    }
  for (const auto& [made, index] : crossing) bodies[made.second].output(made.first, {Place::value, index});

  BodyPool pool;
  std::vector<std::uint32_t> renumbered(bodies.size(), nowhere);
  for (std::uint32_t t = 0; t < bodies.size(); ++t) {
    if (bodies[t].empty()) continue;
    renumbered[t] = std::uint32_t(out.tasks.size());
    Task task = std::move(bodies[t].task);
    task.body = pool.share(bodies[t].finish());
    out.tasks.push_back(std::move(task));
  }
  for (CrossValue& v : out.values) {
    v.producer = renumbered[v.producer];
    for (std::uint32_t& c : v.consumers) c = renumbered[c];
    STRETTO_ASSERT(v.producer != nowhere);
  }
  refuse(verify(out));
  return out;
}

}  // namespace stretto
