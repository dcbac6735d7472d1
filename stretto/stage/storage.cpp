#include "stretto/stage/storage.h"

#include <algorithm>
#include <map>
#include <set>

#include "stretto/ir/op.h"
#include "stretto/stage/task_builder.h"

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
    for (Task& t : s.tasks) tasks_.emplace_back(std::move(t));
    s.tasks.clear();
  }

  void run() {
    const std::uint32_t tasks = std::uint32_t(tasks_.size());
    for (std::uint32_t t = 0; t < tasks; ++t)
      if (part(t) >= Part::F && part(t) <= Part::W) take_gathers(t);
    for (std::uint32_t t = 0; t < tasks; ++t)
      if (part(t) == Part::W) take_scatters(t);
    for (std::uint32_t t = 0; t < tasks; ++t)
      if (changed_.contains(t)) tidy(t);
    for (int piece = 0; piece < s_.pieces; ++piece) add_gathers(std::uint16_t(piece));
    for (auto& [scatter, add] : scatters_) append(std::move(scatter)), append(std::move(add));
    BodyPool pool;
    for (TaskBuilder& t : tasks_) s_.tasks.push_back(std::move(t).finish(pool));
    drop_dead_values();
    refuse(verify(s_));
  }

 private:
  struct Gather {
    std::uint32_t value = 0;
    Node node;
    bool backward = false;  // R, I or W reads it
  };
  Part part(std::uint32_t t) const { return tasks_[t].head().part; }
  std::uint16_t piece(std::uint32_t t) const { return tasks_[t].head().piece; }

  // A gather of a parameter becomes an argument: what a U made. If another task had it from here, it has it from there,
  // too.
  void take_gathers(std::uint32_t t) {
    TaskBuilder& task = tasks_[t];
    for (NodeId id : ids_until<NodeId>(task.graph().nodes.size())) {
      const Node& n = task.graph().node(id);
      if (n.op->collective_kind != CollectiveKind::gather) continue;
      const Binding* from = task.binding_of(n.operands[0]);
      if (!from || from->place != Place::param) continue;
      const auto [it, first] = gathers_.try_emplace({piece(t), from->index});
      Gather& gather = it->second;
      if (first)
        gather = {.value = new_value(n.results[0], t,
                                     fmt::format("gathered parameter {} of piece {}", from->index, piece(t))),
                  .node = n};
      else if (!(gather.node.attrs == n.attrs))
        continue;
      gather.backward = gather.backward || part(t) != Part::F;
      hand_on(t, {id, 0}, gather.value);
      s_.values[gather.value].consumers.push_back(t);
      task.make_argument(id, {Place::value, gather.value});
      changed_.insert(t);
    }
  }
  void hand_on(std::uint32_t t, Value made, std::uint32_t value) {
    TaskBuilder& task = tasks_[t];
    for (std::size_t j = task.graph().outputs.size(); j-- > 0;) {
      const Binding old = task.head().outputs[j];
      if (task.graph().outputs[j] != made || old.place != Place::value) continue;
      for (std::uint32_t c : std::exchange(s_.values[old.index].consumers, {})) {
        tasks_[c].rebind(old, {Place::value, value});
        s_.values[value].consumers.push_back(c);
      }
      task.drop_result(j);
    }
  }

  // What is scattered right before its accumulator leaves W whole.
  void take_scatters(std::uint32_t t) {
    TaskBuilder& task = tasks_[t];
    const std::vector<int> uses = uses_of(task.graph());
    TaskBuilder scatter = new_task(Part::S, piece(t)), add = new_task(Part::A, piece(t));
    for (std::size_t j = 0; j < task.graph().outputs.size(); ++j) {
      const Binding to = task.head().outputs[j];
      const Value v = task.graph().outputs[j];
      const Node n = task.graph().node(v);
      if (to.place != Place::gradient || n.op->collective_kind != CollectiveKind::scatter || uses[v.node.value] != 1)
        continue;
      const Type whole = task.graph().type(n.operands[0]), part = n.results[0];
      const std::uint32_t made = new_value(whole, t, fmt::format("gradient {}, to be scattered", to.index));
      const std::uint32_t got = new_value(part, t, fmt::format("gradient {}, scattered", to.index));
      put_through(scatter, {Place::value, made}, whole, n, {Place::value, got});
      add.result(add.argument(part, {Place::value, got}), to);
      task.replace_result(j, n.operands[0], {Place::value, made});
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
  std::uint32_t new_value(const Type& type, std::uint32_t producer, std::string name) {
    s_.values.push_back({.type = type, .bytes = s_.bytes(type), .producer = producer, .name = std::move(name)});
    return std::uint32_t(s_.values.size() - 1);
  }
  TaskBuilder new_task(Part part, std::uint16_t piece, std::uint32_t subject = 0) const {
    TaskBuilder t({.part = part, .piece = piece, .subject = subject});
    t.graph().dims = s_.dims;
    return t;
  }

  // Without the nodes and arguments that nobody reads any more.
  void tidy(std::uint32_t t) {
    for (const Binding& gone : tasks_[t].prune())
      if (gone.place == Place::value) std::erase(s_.values[gone.index].consumers, t);
  }

  void add_gathers(std::uint16_t piece) {
    TaskBuilder whole = new_task(Part::U, piece, std::uint32_t(Gathered::whole));
    TaskBuilder backward = new_task(Part::U, piece, std::uint32_t(Gathered::backward));
    for (auto it = gathers_.lower_bound({piece, 0}); it != gathers_.end() && it->first.first == piece; ++it) {
      const std::uint32_t param = it->first.second;
      const Gather& x = it->second;
      if (s_.values[x.value].consumers.empty()) continue;
      const auto add = [&](TaskBuilder& t) {
        put_through(t, {Place::param, param}, s_.params[param], x.node, {Place::value, x.value});
      };
      add(whole);
      if (x.backward) add(backward);
    }
    const std::size_t all = whole.arguments().size(), some = backward.arguments().size();
    if (all == 0) return;
    const std::uint32_t first = append(std::move(whole));
    if (some == 0 || some == all) return;
    append(std::move(backward));
    for (const Binding& b : tasks_[first].head().outputs) s_.values[b.index].producer = first;
  }
  std::uint32_t append(TaskBuilder task) {
    const std::uint32_t number = std::uint32_t(tasks_.size());
    for (const Binding& b : task.arguments())
      if (b.place == Place::value) s_.values[b.index].consumers.push_back(number);
    for (const Binding& b : task.head().outputs)
      if (b.place == Place::value) s_.values[b.index].producer = number;
    tasks_.push_back(std::move(task));
    return number;
  }

  void drop_dead_values() {
    std::vector<std::uint32_t> number;
    std::vector<CrossValue> alive;
    for (CrossValue& v : s_.values) {
      number.push_back(std::uint32_t(alive.size()));
      if (!v.consumers.empty()) alive.push_back(std::move(v));
    }
    s_.values = std::move(alive);
    for (Task& t : s_.tasks)
      for (auto* list : {&t.inputs, &t.outputs})
        for (Binding& b : *list)
          if (b.place == Place::value) b.index = number[b.index];
  }

  Step& s_;
  std::vector<TaskBuilder> tasks_;                                     // of all of its tasks
  std::map<std::pair<std::uint16_t, std::uint32_t>, Gather> gathers_;  // (piece, parameter)
  std::vector<std::pair<TaskBuilder, TaskBuilder>> scatters_;
  std::set<std::uint32_t> changed_;
};

}  // namespace

Step set_apart(Step s) {
  Apart(s).run();
  return s;
}

}  // namespace stretto
