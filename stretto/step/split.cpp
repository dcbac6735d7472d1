#include "stretto/step/split.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "stretto/base/text.h"
#include "stretto/ops/param.h"
#include "stretto/step/inner/owners.h"
#include "stretto/step/task_builder.h"

namespace stretto {
namespace {

// What every task computes: found from what is asked for, so that nothing is made or kept that nobody reads.
class Demand {
 public:
  Demand(const StepGraph& s, const Owners& owners) : g_(s.graph), owners_(owners), nodes_(owners.makers().size()) {
    for (const StepGraph::Output& o : s.outputs) need(o.value, maker_of(o));
    for (const StepGraph::Grad& d : s.gradients) need(d.value, owners.maker(Part::W, d.piece));
    while (!open_.empty()) {
      const auto [v, reader] = open_.back();
      open_.pop_back();
      look(v, reader);
    }
  }
  MakerId maker_of(const StepGraph::Output& o) const {
    return o.count ? Owners::counts : owners_.maker(Part::F, PieceId(g_.node(o.value).piece));
  }
  const std::set<NodeId>& nodes(MakerId m) const { return nodes_[m]; }

 private:
  void need(Value v, MakerId reader) { open_.push_back({v, reader}); }
  void look(Value v, MakerId reader) {
    if (owners_.source(v) || owners_.free(v)) return;
    if (!owners_.everywhere(v)) {
      const MakerId maker = owners_.of(v, reader);
      if (!nodes_[maker].insert(v.node).second) return;
      reader = maker;
    }
    for (Value o : g_.node(v).operands) need(o, reader);
  }

  const Graph& g_;
  const Owners& owners_;
  IdVector<MakerId, std::set<NodeId>> nodes_;  // ascending
  std::vector<std::pair<Value, MakerId>> open_;
};

// One task while it is being built.
class TaskOfPiece {
 public:
  TaskOfPiece(const StepGraph& s, const Owners& owners, MakerId id)
      : step_(s), owners_(owners), id_(id), task_({.part = owners.part(id), .piece = owners.piece(id)}) {
    task_.graph().dims = s.graph.dims;
  }

  NodeId place(NodeId id) {
    if (const auto it = nodes_.find(id); it != nodes_.end()) return it->second;
    Node n = step_.graph.node(id);
    for (Value& v : n.operands) v = local(v);
    n.scope = 0, n.piece = 0, n.backward = false;
    if (n.op->key) {
      auto& keys = task_.head().keys;
      const std::string name = n.op->key(n.attrs).name;
      n.attrs = n.op->rekeyed(n.attrs, {.number = std::ssize(keys)});
      keys.push_back(hash_of(std::string_view(name)));
    }
    return nodes_[id] = task_.add(std::move(n));
  }
  void result(Value v, Binding to) { task_.result(local(v), to); }

  const std::vector<std::pair<Value, Value>>& foreign() const { return foreign_; }  // of other tasks; as arguments here
  void bind(Value argument, Binding from) { task_.bind(argument, from); }
  bool empty() const { return task_.graph().outputs.empty(); }
  Task finish(BodyPool& pool) { return std::move(task_).finish(pool); }

 private:
  // The value in the body that stands for `v`; sources become arguments, free nodes and views are made again here.
  Value local(Value v) {
    if (owners_.source(v) || (!owners_.everywhere(v) && owners_.of(v, id_) != id_)) return argument(v);
    return {place(v.node), v.result};
  }
  // Arguments stand before everything that uses them: a body is built in topological order.
  Value argument(Value v) {
    if (const auto it = arguments_.find(v); it != arguments_.end()) return it->second;
    const Value here = task_.argument(step_.graph.type(v));
    const auto among = [&]<class I>(const IdVector<I, Value>& list) {
      const auto it = std::find(list.begin(), list.end(), v);
      if (it == list.end()) return false;
      task_.bind(here, I(it - list.begin()));
      return true;
    };
    if (const Leaf leaf = step_.graph.node(v).op->leaf; leaf == Leaf::param)
      STRETTO_ASSERT(among(step_.params), "an undeclared parameter");
    else if (leaf == Leaf::argument)
      STRETTO_ASSERT(among(step_.inputs) || among(step_.scalars), "an undeclared input");
    else
      foreign_.push_back({v, here});
    return arguments_[v] = here;
  }

  const StepGraph& step_;
  const Owners& owners_;
  MakerId id_;
  TaskBuilder task_;
  std::unordered_map<NodeId, NodeId> nodes_;
  std::map<Value, Value> arguments_;
  std::vector<std::pair<Value, Value>> foreign_;
};
using TasksOfPieces = IdVector<MakerId, TaskOfPiece>;

void check(const StepGraph& s, const Owners& owners, const SplitOptions& o) {
  for (const StepGraph::Output& out : s.outputs)
    if (out.count && !owners.free(out.value))
      throw Error("loss", "the count of '{}' depends on parameters: {}", out.name, s.graph.str(out.value))
          .hint("counts are needed before the first backward; make them from inputs only");
  STRETTO_ASSERT((o.recompute.empty() || o.recompute.size() == owners.pieces()) &&
                     (o.stage_of.empty() || o.stage_of.size() == owners.pieces()),
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

// What the step is asked for: per-microbatch results, and gradients for the accumulators.
void add_results(const StepGraph& s, const Owners& owners, const Demand& demand, TasksOfPieces& tasks, Step& out) {
  for (const StepGraph::Output& o : s.outputs) {
    const Type& type = s.graph.type(o.value);
    tasks[demand.maker_of(o)].result(o.value, out.outputs.next_id());
    out.outputs.push_back({o.name, type, s.graph.bytes(type), o.count});
  }
  for (const StepGraph::Grad& g : s.gradients) {  // those of a parameter's segments stand side by side
    const Accumulator a{.param = g.param, .piece = out.first_segment(g.piece), .type = s.graph.type(g.value)};
    const bool known = !out.accumulators.empty() && out.accumulators.back().param == a.param &&
                       out.accumulators.back().piece == a.piece;
    if (!known) out.accumulators.push_back(a);
    STRETTO_ASSERT(out.accumulators.back().type == a.type, "segments have gradients of one type");
    tasks[owners.maker(Part::W, g.piece)].result(g.value, AccumulatorId(out.accumulators.size() - 1));
  }
}

// Values that cross from one task to another. A value that is made again counts as another one.
struct MakerAndReaders {
  Value value;
  MakerId maker;
  std::vector<MakerId> readers;
};
IdVector<ValueId, MakerAndReaders> connect(const Owners& owners, TasksOfPieces& tasks) {
  IdVector<ValueId, MakerAndReaders> all;
  std::map<std::pair<Value, MakerId>, ValueId> known;
  for (MakerId reader : tasks.ids())
    for (const auto& [v, argument] : tasks[reader].foreign()) {
      const MakerId maker = owners.of(v, reader);
      const auto [it, fresh] = known.try_emplace({v, maker}, all.next_id());
      if (fresh) all.push_back({v, maker, {}});
      all[it->second].readers.push_back(reader);
      tasks[reader].bind(argument, it->second);
    }
  for (const auto& [made, value] : known) tasks[made.second].result(made.first, value);
  return all;
}

}  // namespace

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
  out.segments = s.segments;
  out.recompute = options.recompute;

  TasksOfPieces tasks;
  for (MakerId m : owners.makers()) {
    tasks.push_back(TaskOfPiece(s, owners, m));
    for (NodeId node : demand.nodes(m)) tasks[m].place(node);
  }
  add_results(s, owners, demand, tasks, out);
  const IdVector<ValueId, MakerAndReaders> crossing = connect(owners, tasks);

  BodyPool pool;
  IdVector<MakerId, std::optional<TaskId>> task_of(tasks.size());  // none: there is nothing to do
  for (MakerId m : tasks.ids())
    if (!tasks[m].empty()) task_of[m] = out.tasks.push_back(tasks[m].finish(pool));
  for (const MakerAndReaders& x : crossing) {
    const Type& type = s.graph.type(x.value);
    out.values.push_back({.type = type,
                          .bytes = s.graph.bytes(type),
                          .producer = task_of[x.maker].value(),
                          .name = readable(s.graph, x.value)});
    for (MakerId reader : x.readers) out.values.back().consumers.push_back(task_of[reader].value());
  }
  refuse(verify(out));
  return out;
}

}  // namespace stretto
