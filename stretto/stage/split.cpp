#include "stretto/stage/split.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "stretto/ops/copy.h"
#include "stretto/ops/input.h"
#include "stretto/ops/ops.h"

namespace stretto {
namespace {

constexpr std::uint32_t nowhere = ~0u;

bool is_source(const Node& n) { return n.op == &input_op || n.op == &param_op; }

// Which task every node belongs to.
struct Assignment {
  std::vector<char> free;           // depends on inputs and constants only
  std::vector<std::uint32_t> task;  // index into order, or nowhere for sources, free nodes and views
  std::vector<std::pair<Part, std::uint16_t>> order;
  std::map<std::pair<Part, std::uint16_t>, std::uint32_t> index;
};

Assignment assign(const StepGraph& s) {
  const Graph& g = s.graph;
  Assignment a;
  a.free.assign(g.nodes.size(), 0);
  std::uint16_t pieces = 1;
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    const Node& n = g.nodes[i];
    pieces = std::max<std::uint16_t>(pieces, n.piece + 1);
    a.free[i] = n.op != &param_op;
    for (Value v : n.operands) a.free[i] = a.free[i] && a.free[v.node.value];
  }
  // I: what a lower piece needs, and what that needs within the piece.
  std::vector<char> inner(g.nodes.size(), 0);
  for (std::size_t i = g.nodes.size(); i-- > 0;) {
    const Node& user = g.nodes[i];
    if (!user.backward) continue;
    for (Value v : user.operands) {
      const Node& n = g.node(v);
      if (n.backward && (user.piece != n.piece || inner[i])) inner[v.node.value] = 1;
    }
  }
  const auto add = [&](Part p, std::uint16_t piece) {
    a.index[{p, piece}] = std::uint32_t(a.order.size());
    a.order.push_back({p, piece});
  };
  add(Part::count, 0);
  for (std::uint16_t p = 0; p < pieces; ++p) add(Part::F, p), add(Part::I, p), add(Part::W, p);
  std::vector<char> needed(g.nodes.size(), 0);
  for (const StepGraph::Output& o : s.outputs) needed[o.value.node.value] = 1;
  for (const StepGraph::Grad& d : s.gradients) needed[d.value.node.value] = 1;
  for (std::size_t i = g.nodes.size(); i-- > 0;)
    if (needed[i])
      for (Value v : g.nodes[i].operands) needed[v.node.value] = 1;
  a.task.assign(g.nodes.size(), nowhere);
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    const Node& n = g.nodes[i];
    if (!needed[i] || a.free[i] || n.op->view || is_source(n)) continue;
    a.task[i] = a.index.at({!n.backward ? Part::F : inner[i] ? Part::I : Part::W, n.piece});
  }
  return a;
}

// One task's body while it is being built.
class BodyBuilder {
 public:
  BodyBuilder(const StepGraph& s, const Assignment& a, std::uint32_t task) : step_(s), assignment_(a), task_(task) {
    body_.dims = s.graph.dims;
  }

  // The value in the body that stands for `v`; sources become arguments, free nodes and views are made again here.
  Value local(Value v) {
    const Node& n = step_.graph.node(v);
    const bool mine = assignment_.task[v.node.value] == task_;
    const bool here = mine || assignment_.free[v.node.value] || n.op->view;
    if (!here || is_source(n)) return argument(v);
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
    if (n.op == &input_op || n.op->view ||
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
    if (n.op == &param_op)
      STRETTO_ASSERT(among(step_.params, Place::param), "an undeclared parameter");
    else if (n.op == &input_op)
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
  const Assignment& assignment_;
  std::uint32_t task_;
  Graph body_;
  std::unordered_map<std::uint32_t, NodeId> nodes_;
  std::map<Value, Value> arguments_;
};

void check_counts(const StepGraph& s, const Assignment& a) {
  for (const StepGraph::Output& o : s.outputs)
    if (o.count && !a.free[o.value.node.value])
      throw Error("loss", "the count of '{}' depends on parameters: {}", o.name, s.graph.str(o.value))
          .hint("counts are needed before the first backward; make them from inputs only");
}

}  // namespace

std::string_view name_of(Part p) {
  constexpr std::string_view names[] = {"count", "scale", "F", "I", "W", "combine", "norm", "clip", "update"};
  return names[std::size_t(p)];
}

std::size_t Step::bytes(const Type& t) const {
  std::size_t n = size_of(t.dtype);
  for (DimId d : t.dims) n *= std::size_t(dims[d.value].size);
  return n;
}

const Task* Step::find(Part part, int piece) const {
  for (const Task& t : tasks)
    if (t.part == part && t.piece == piece) return &t;
  return nullptr;
}

std::shared_ptr<const Graph> BodyPool::share(Graph g) {
  const u64 h = g.hash();
  for (const auto& [known, body] : known_)
    if (known == h) return body;
  known_.push_back({h, std::make_shared<const Graph>(std::move(g))});
  return known_.back().second;
}

Step split(const StepGraph& s) {
  const Assignment a = assign(s);
  check_counts(s, a);
  Step out;
  out.dims = s.graph.dims;
  for (Value v : s.params) out.params.push_back(s.graph.type(v));
  for (Value v : s.inputs) out.inputs.push_back(s.graph.type(v));
  for (Value v : s.scalars) out.scalars.push_back(s.graph.type(v));
  for (const auto& [part, piece] : a.order) out.pieces = std::max(out.pieces, int(piece) + 1);

  std::vector<BodyBuilder> bodies;
  for (std::uint32_t t = 0; t < a.order.size(); ++t) {
    bodies.emplace_back(s, a, t);
    bodies.back().task.part = a.order[t].first;
    bodies.back().task.piece = a.order[t].second;
  }
  for (std::size_t i = 0; i < s.graph.nodes.size(); ++i)
    if (a.task[i] != nowhere) bodies[a.task[i]].place(NodeId{std::uint32_t(i)});

  for (const StepGraph::Output& o : s.outputs) {
    const Node& n = s.graph.node(o.value);
    const std::uint32_t t = o.count ? 0 : a.index.at({Part::F, n.piece});
    const Type& type = s.graph.type(o.value);
    bodies[t].output(o.value, {Place::output, std::uint32_t(out.outputs.size())});
    out.outputs.push_back({o.name, type, s.graph.bytes(type)});
  }
  std::vector<StepGraph::Grad> gradients = s.gradients;
  std::stable_sort(gradients.begin(), gradients.end(), [](const auto& x, const auto& y) {
    return std::pair(x.param, x.piece) < std::pair(y.param, y.piece);
  });
  for (const StepGraph::Grad& g : gradients) {
    bodies[a.index.at({Part::W, g.piece})].output(g.value, {Place::gradient, std::uint32_t(out.accumulators.size())});
    out.accumulators.push_back({g.param, g.piece});
  }

  // Values that cross from one task to another.
  std::map<Value, std::uint32_t> crossing;
  for (std::uint32_t t = 0; t < bodies.size(); ++t)
    for (const auto& [v, position] : bodies[t].foreign) {
      const auto [it, fresh] = crossing.try_emplace(v, std::uint32_t(out.values.size()));
      if (fresh) {
        const Type& type = s.graph.type(v);
        out.values.push_back(
            {.type = type, .bytes = s.graph.bytes(type), .producer = a.task[v.node.value], .name = s.graph.str(v)});
      }
      out.values[it->second].consumers.push_back(t);
      bodies[t].task.inputs[position] = {Place::value, it->second};
    }
  for (const auto& [v, index] : crossing) bodies[out.values[index].producer].output(v, {Place::value, index});

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

std::vector<Fault> verify(const Step& s) {
  std::vector<Fault> faults;
  for (std::size_t t = 0; t < s.tasks.size(); ++t) {
    const Task& task = s.tasks[t];
    const std::string where = fmt::format("task {}{}", name_of(task.part), task.piece);
    std::size_t arguments = 0;
    for (const Node& n : task.body->nodes) arguments += n.op == &input_op;
    if (arguments != task.inputs.size())
      faults.push_back(fault(where, "", "has {} arguments and {} bindings", arguments, task.inputs.size()));
    if (task.body->outputs.size() != task.outputs.size())
      faults.push_back(
          fault(where, "", "has {} results and {} bindings", task.body->outputs.size(), task.outputs.size()));
    for (Fault& f : verify(*task.body)) f.where = where + ", " + f.where, faults.push_back(std::move(f));
  }
  return faults;
}

std::string Step::str() const {
  std::string text;
  for (const Task& t : tasks) {
    std::size_t kept = 0;
    for (const Binding& b : t.outputs)
      if (b.place == Place::value) kept += values[b.index].bytes;
    text += fmt::format("{:<7} piece {:<3} {:>3} nodes, {} arguments, {} results, keeps {} bytes\n", name_of(t.part),
                        t.piece, t.body->nodes.size(), t.inputs.size(), t.outputs.size(), kept);
  }
  return text;
}

}  // namespace stretto
