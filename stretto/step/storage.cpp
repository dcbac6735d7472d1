#include "stretto/step/storage.h"

#include <algorithm>
#include <map>
#include <set>

#include "stretto/ir/op.h"
#include "stretto/step/task_builder.h"

namespace stretto {
namespace {

// One argument through one node: a gather, a reduce-scatter.
void put_through(TaskBuilder& t, Binding from, const Type& operand, Node node, Binding to) {
  node.operands = {t.argument(operand, from)};
  node.scope = 0, node.piece = 0, node.backward = false;
  t.result(Value{t.add(std::move(node)), 0}, to);
}

class Apart {
 public:
  explicit Apart(Step& s) : s_(s) {
    for (Task& t : s.tasks) tasks_.push_back(TaskBuilder(std::move(t)));
    s.tasks.clear();
  }

  void run() {
    for (TaskId t : tasks_.ids())
      if (of_an_action(part(t))) take_gathers(t);
    for (TaskId t : tasks_.ids())
      if (part(t) == Part::W) take_scatters(t);
    for (TaskId t : changed_) tidy(t);
    for (PieceId piece : s_.piece_ids()) add_gathers(piece);
    for (auto& [scatter, add] : scatters_) append(std::move(scatter)), append(std::move(add));
    BodyPool pool;
    for (TaskBuilder& t : tasks_) s_.tasks.push_back(std::move(t).finish(pool));
    drop_dead_values();
    refuse(verify(s_));
  }

 private:
  struct Gather {
    ValueId value;
    Node node;
    bool backward = false;  // R, I or W reads it
  };
  Part part(TaskId t) const { return tasks_[t].head().part; }
  PieceId piece(TaskId t) const { return *tasks_[t].head().piece; }

  // A gather of a parameter becomes an argument that a U makes. Tasks that read it from this one read it from the U,
  // too.
  void take_gathers(TaskId t) {
    TaskBuilder& task = tasks_[t];
    for (NodeId id : ids_until<NodeId>(task.graph().nodes.size())) {
      const Node& n = task.graph().node(id);
      if (n.op->collective_kind != CollectiveKind::gather) continue;
      const Binding* from = task.binding_of(n.operands[0]);
      const ParamId* param = from ? as<ParamId>(*from) : nullptr;
      if (!param) continue;
      const PieceId whole = s_.first_segment(piece(t));
      const auto [it, first] = gathers_.try_emplace({whole, *param});
      Gather& gather = it->second;
      if (first)
        gather = {.value = new_value(n.results[0], t,
                                     fmt::format("gathered parameter {} of piece {}", param->value, whole.value)),
                  .node = n};
      else if (!(gather.node.attrs == n.attrs))
        continue;
      gather.backward = gather.backward || part(t) != Part::F;
      hand_on(t, {id, 0}, gather.value);
      s_.values[gather.value].consumers.push_back(t);
      task.make_argument(id, gather.value);
      changed_.insert(t);
    }
  }
  void hand_on(TaskId t, Value made, ValueId value) {
    TaskBuilder& task = tasks_[t];
    for (std::size_t j = task.graph().outputs.size(); j-- > 0;) {
      const Binding old = task.head().outputs[ResultId(j)];
      if (task.graph().outputs[j] != made || !as<ValueId>(old)) continue;
      for (TaskId c : std::exchange(s_.values[*as<ValueId>(old)].consumers, {})) {
        tasks_[c].rebind(old, value);
        s_.values[value].consumers.push_back(c);
      }
      task.drop_result(ResultId(j));
    }
  }

  // W hands over whole gradients instead of scattering them right before the accumulator.
  void take_scatters(TaskId t) {
    TaskBuilder& task = tasks_[t];
    const std::vector<int> uses = uses_of(task.graph());
    TaskBuilder scatter = new_task(Part::S, piece(t)), add = new_task(Part::A, piece(t));
    for (ResultId j : task.head().outputs.ids()) {
      const Binding to = task.head().outputs[j];
      const AccumulatorId* gradient = as<AccumulatorId>(to);
      const Value v = task.graph().outputs[j.value];
      const Node n = task.graph().node(v);
      if (!gradient || n.op->collective_kind != CollectiveKind::scatter || uses[v.node.value] != 1) continue;
      const Type whole = task.graph().type(n.operands[0]), part = n.results[0];
      const ValueId made = new_value(whole, t, fmt::format("gradient {}, to be scattered", gradient->value));
      const ValueId got = new_value(part, t, fmt::format("gradient {}, scattered", gradient->value));
      put_through(scatter, made, whole, n, got);
      add.result(add.argument(part, got), to);
      task.replace_result(j, n.operands[0], made);
    }
    if (scatter.arguments().empty()) return;
    changed_.insert(t);
    scatters_.push_back({std::move(scatter), std::move(add)});
  }
  static std::vector<int> uses_of(const Graph& g) {
    std::vector<int> uses(g.nodes.size(), 0);
    for (const Node& n : g.nodes)
      for (Value v : n.operands) ++uses[v.node.value];
    for (Value v : g.outputs) ++uses[v.node.value];
    return uses;
  }
  ValueId new_value(const Type& type, TaskId producer, std::string name) {
    return s_.values.push_back({.type = type, .bytes = s_.bytes(type), .producer = producer, .name = std::move(name)});
  }
  TaskBuilder new_task(Part part, PieceId piece, About about = {}) const {
    TaskBuilder t({.part = part, .piece = piece, .about = about});
    t.graph().dims = s_.dims;
    return t;
  }

  // Without the nodes and arguments that nobody reads any more.
  void tidy(TaskId t) {
    for (const Binding& gone : tasks_[t].prune())
      if (const ValueId* v = as<ValueId>(gone)) std::erase(s_.values[*v].consumers, t);
  }

  void add_gathers(PieceId piece) {
    TaskBuilder whole = new_task(Part::U, piece, Gathered::whole);
    TaskBuilder backward = new_task(Part::U, piece, Gathered::backward);
    for (auto it = gathers_.lower_bound({piece, ParamId(0)}); it != gathers_.end() && it->first.first == piece; ++it) {
      const ParamId param = it->first.second;
      const Gather& x = it->second;
      if (s_.values[x.value].consumers.empty()) continue;
      const auto add = [&](TaskBuilder& t) { put_through(t, param, s_.params[param], x.node, x.value); };
      add(whole);
      if (x.backward) add(backward);
    }
    const std::size_t all = whole.arguments().size(), some = backward.arguments().size();
    if (all == 0) return;
    const TaskId first = append(std::move(whole));
    if (some == 0 || some == all) return;
    append(std::move(backward));
    for (const Binding& b : tasks_[first].head().outputs) s_.values[std::get<ValueId>(b)].producer = first;
  }
  TaskId append(TaskBuilder task) {
    const TaskId id = tasks_.next_id();
    for (const Binding& b : task.arguments())
      if (const ValueId* v = as<ValueId>(b)) s_.values[*v].consumers.push_back(id);
    for (const Binding& b : task.head().outputs)
      if (const ValueId* v = as<ValueId>(b)) s_.values[*v].producer = id;
    return tasks_.push_back(std::move(task));
  }

  void drop_dead_values() {
    IdVector<ValueId, ValueId> moved;
    IdVector<ValueId, CrossValue> alive;
    for (CrossValue& v : s_.values) {
      moved.push_back(alive.next_id());
      if (!v.consumers.empty()) alive.push_back(std::move(v));
    }
    s_.values = std::move(alive);
    const auto renumber = [&](Binding& b) {
      if (const ValueId* v = as<ValueId>(b)) b = moved[*v];
    };
    for (Task& t : s_.tasks) {
      for (Binding& b : t.inputs) renumber(b);
      for (Binding& b : t.outputs) renumber(b);
    }
  }

  Step& s_;
  IdVector<TaskId, TaskBuilder> tasks_;
  std::map<std::pair<PieceId, ParamId>, Gather> gathers_;
  std::vector<std::pair<TaskBuilder, TaskBuilder>> scatters_;
  std::set<TaskId> changed_;
};

}  // namespace

Step set_apart(Step s) {
  Apart(s).run();
  return s;
}

}  // namespace stretto
