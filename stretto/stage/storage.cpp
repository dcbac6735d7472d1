#include "stretto/stage/storage.h"

#include <algorithm>
#include <map>
#include <set>

#include "stretto/ops/copy.h"
#include "stretto/ops/input.h"
#include "stretto/ops/ops.h"
#include "stretto/stage/split.h"

namespace stretto {
namespace {

Node input_node(std::size_t position, const Type& type) {
  return {.op = &input_op,
          .attrs = InputAttrs{.name = std::to_string(position), .dtype = type.dtype, .dims = type.dims},
          .results = {type}};
}

// A task whose arguments go through one node each: gathers, reduce-scatters, copies.
struct RowOfNodes {
  Graph body;
  Task task;
  RowOfNodes(const Step& s, Part part, std::uint16_t piece, std::uint32_t subject = 0) {
    body.dims = s.dims;
    task.part = part, task.piece = piece, task.subject = subject;
  }
  void add(Binding from, const Type& operand, Node node, Binding to) {
    body.nodes.push_back(input_node(task.inputs.size(), operand));
    node.operands = {{NodeId{std::uint32_t(body.nodes.size() - 1)}, 0}};
    node.scope = 0, node.piece = 0, node.backward = false;
    body.nodes.push_back(std::move(node));
    body.outputs.push_back({NodeId{std::uint32_t(body.nodes.size() - 1)}, 0});
    task.inputs.push_back(from);
    task.outputs.push_back(to);
  }
};

class Apart {
 public:
  explicit Apart(Step& s) : s_(s) {
    for (const Task& t : s.tasks) bodies_.push_back(*t.body);
  }

  void run() {
    const std::uint32_t tasks = std::uint32_t(s_.tasks.size());
    for (std::uint32_t t = 0; t < tasks; ++t)
      if (s_.tasks[t].part >= Part::F && s_.tasks[t].part <= Part::W) take_gathers(t);
    for (std::uint32_t t = 0; t < tasks; ++t)
      if (s_.tasks[t].part == Part::W) take_scatters(t);
    for (std::uint32_t t = 0; t < tasks; ++t)
      if (changed_.contains(t)) tidy(t);
    for (int piece = 0; piece < s_.pieces; ++piece) add_gathers(std::uint16_t(piece));
    for (auto& [scatter, add] : scatters_) finish(std::move(scatter)), finish(std::move(add));
    drop_dead_values();
    BodyPool pool;
    for (std::uint32_t t = 0; t < s_.tasks.size(); ++t) s_.tasks[t].body = pool.share(std::move(bodies_[t]));
    refuse(verify(s_));
  }

 private:
  struct Gather {
    std::uint32_t value = 0;
    Node node;
    bool backward = false;  // R, I or W reads it
  };

  // Arguments are numbered by their input nodes.
  std::vector<std::uint32_t> arguments(const Graph& g) const {
    std::vector<std::uint32_t> at(g.nodes.size(), 0);
    std::uint32_t count = 0;
    for (std::size_t i = 0; i < g.nodes.size(); ++i)
      if (g.nodes[i].op->leaf == Leaf::argument) at[i] = count++;
    return at;
  }

  // A gather becomes an argument: what a U made. If another task had it from here, it has it from there, too.
  void take_gathers(std::uint32_t t) {
    Graph& g = bodies_[t];
    Task& task = s_.tasks[t];
    const std::vector<std::uint32_t> argument = arguments(g);
    std::vector<Binding> bindings = task.inputs;  // per input node, as they will stand
    std::map<std::uint32_t, Binding> fresh;       // node -> binding
    for (std::uint32_t i = 0; i < g.nodes.size(); ++i) {
      const Node& n = g.nodes[i];
      if (n.op->collective_kind != CollectiveKind::gather || g.node(n.operands[0]).op->leaf != Leaf::argument) continue;
      const Binding from = task.inputs[argument[n.operands[0].node.value]];
      if (from.place != Place::param) continue;
      const auto [it, first] = gathers_.try_emplace({task.piece, from.index});
      if (!first && !(it->second.node.attrs == n.attrs)) continue;
      if (first) {
        it->second = {.value = std::uint32_t(s_.values.size()), .node = n};
        s_.values.push_back({.type = n.results[0],
                             .bytes = s_.bytes(n.results[0]),
                             .name = fmt::format("gathered parameter {} of piece {}", from.index, task.piece)});
      }
      it->second.backward = it->second.backward || task.part != Part::F;
      fresh[i] = {Place::value, it->second.value};
      hand_on(t, {NodeId{i}, 0}, it->second.value);
    }
    if (fresh.empty()) return;
    changed_.insert(t);
    std::vector<Binding> inputs;
    for (std::uint32_t i = 0; i < g.nodes.size(); ++i) {
      if (g.nodes[i].op->leaf == Leaf::argument) inputs.push_back(bindings[argument[i]]);
      if (const auto it = fresh.find(i); it != fresh.end()) {
        g.nodes[i] = input_node(0, g.nodes[i].results[0]);
        inputs.push_back(it->second);
        s_.values[it->second.index].consumers.push_back(t);
      }
    }
    task.inputs = std::move(inputs);
  }
  void hand_on(std::uint32_t t, Value made, std::uint32_t value) {
    Graph& g = bodies_[t];
    Task& task = s_.tasks[t];
    for (std::size_t j = g.outputs.size(); j-- > 0;) {
      if (g.outputs[j] != made || task.outputs[j].place != Place::value) continue;
      const std::uint32_t old = task.outputs[j].index;
      for (std::uint32_t c : std::exchange(s_.values[old].consumers, {})) {
        std::replace(s_.tasks[c].inputs.begin(), s_.tasks[c].inputs.end(), Binding{Place::value, old},
                     Binding{Place::value, value});
        s_.values[value].consumers.push_back(c);
      }
      g.outputs.erase(g.outputs.begin() + std::ptrdiff_t(j));
      task.outputs.erase(task.outputs.begin() + std::ptrdiff_t(j));
    }
  }

  // What is scattered right before its accumulator leaves W whole.
  void take_scatters(std::uint32_t t) {
    Graph& g = bodies_[t];
    std::vector<int> uses(g.nodes.size(), 0);
    for (const Node& n : g.nodes)
      for (Value v : n.operands) ++uses[v.node.value];
    for (Value v : g.outputs) ++uses[v.node.value];
    RowOfNodes scatter(s_, Part::S, s_.tasks[t].piece), add(s_, Part::A, s_.tasks[t].piece);
    for (std::size_t j = 0; j < g.outputs.size(); ++j) {
      const Binding to = s_.tasks[t].outputs[j];
      const Node n = g.node(g.outputs[j]);
      if (to.place != Place::gradient || n.op->collective_kind != CollectiveKind::scatter ||
          uses[g.outputs[j].node.value] != 1)
        continue;
      const Type whole = g.type(n.operands[0]), part = n.results[0];
      const std::uint32_t made = new_value(whole, t, fmt::format("gradient {}, to be scattered", to.index));
      const std::uint32_t got = new_value(part, t, fmt::format("gradient {}, scattered", to.index));
      scatter.add({Place::value, made}, whole, n, {Place::value, got});
      add.add({Place::value, got}, part, {.op = &copy_op, .results = {part}}, to);
      g.outputs[j] = own_memory(g, n.operands[0]);
      s_.tasks[t].outputs[j] = {Place::value, made};
    }
    if (scatter.task.inputs.empty()) return;
    changed_.insert(t);
    scatters_.push_back({std::move(scatter), std::move(add)});
  }
  std::uint32_t new_value(const Type& type, std::uint32_t producer, std::string name) {
    s_.values.push_back({.type = type, .bytes = s_.bytes(type), .producer = producer, .name = std::move(name)});
    return std::uint32_t(s_.values.size() - 1);
  }
  // As split() does: arguments, views and what is a result already are copied.
  Value own_memory(Graph& g, Value v) const {
    const Node& n = g.node(v);
    if (n.op->leaf != Leaf::argument && !n.op->view &&
        std::find(g.outputs.begin(), g.outputs.end(), v) == g.outputs.end())
      return v;
    g.nodes.push_back({.op = &copy_op, .operands = {v}, .results = {g.type(v)}});
    return {NodeId{std::uint32_t(g.nodes.size() - 1)}, 0};
  }

  // Without the nodes and arguments that nobody reads any more.
  void tidy(std::uint32_t t) {
    Graph& g = bodies_[t];
    Task& task = s_.tasks[t];
    std::vector<char> needed(g.nodes.size(), 0);
    for (Value v : g.outputs) needed[v.node.value] = 1;
    for (std::size_t i = g.nodes.size(); i-- > 0;)
      if (needed[i])
        for (Value v : g.nodes[i].operands) needed[v.node.value] = 1;
    const std::vector<std::uint32_t> argument = arguments(g);
    std::vector<Binding> inputs;
    std::vector<std::uint32_t> number(g.nodes.size(), 0);
    std::vector<Node> nodes;
    for (std::size_t i = 0; i < g.nodes.size(); ++i) {
      const bool is_input = g.nodes[i].op->leaf == Leaf::argument;
      if (is_input && !needed[i]) forget(task.inputs[argument[i]], t);
      if (!needed[i]) continue;
      Node n = std::move(g.nodes[i]);
      for (Value& v : n.operands) v.node.value = number[v.node.value];
      if (is_input) {
        n = input_node(inputs.size(), n.results[0]);
        inputs.push_back(task.inputs[argument[i]]);
      }
      number[i] = std::uint32_t(nodes.size());
      nodes.push_back(std::move(n));
    }
    g.nodes = std::move(nodes);
    for (Value& v : g.outputs) v.node.value = number[v.node.value];
    task.inputs = std::move(inputs);
  }
  void forget(const Binding& b, std::uint32_t t) {
    if (b.place == Place::value) std::erase(s_.values[b.index].consumers, t);
  }

  void add_gathers(std::uint16_t piece) {
    RowOfNodes whole(s_, Part::U, piece, std::uint32_t(Gathered::whole));
    RowOfNodes backward(s_, Part::U, piece, std::uint32_t(Gathered::backward));
    for (auto it = gathers_.lower_bound({piece, 0}); it != gathers_.end() && it->first.first == piece; ++it) {
      const std::uint32_t param = it->first.second;
      const Gather& x = it->second;
      if (s_.values[x.value].consumers.empty()) continue;
      whole.add({Place::param, param}, s_.params[param], x.node, {Place::value, x.value});
      if (x.backward) backward.add({Place::param, param}, s_.params[param], x.node, {Place::value, x.value});
    }
    const std::size_t all = whole.task.inputs.size(), some = backward.task.inputs.size();
    if (all == 0) return;
    finish(std::move(whole));
    if (some > 0 && some < all) {
      const std::uint32_t first = std::uint32_t(s_.tasks.size() - 1);
      finish(std::move(backward));
      for (const Binding& b : s_.tasks[first].outputs) s_.values[b.index].producer = first;
    }
  }
  void finish(RowOfNodes row) {
    const std::uint32_t number = std::uint32_t(s_.tasks.size());
    for (const Binding& b : row.task.inputs)
      if (b.place == Place::value) s_.values[b.index].consumers.push_back(number);
    for (const Binding& b : row.task.outputs)
      if (b.place == Place::value) s_.values[b.index].producer = number;
    s_.tasks.push_back(std::move(row.task));
    bodies_.push_back(std::move(row.body));
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
  std::vector<Graph> bodies_;                                          // per task
  std::map<std::pair<std::uint16_t, std::uint32_t>, Gather> gathers_;  // (piece, parameter)
  std::vector<std::pair<RowOfNodes, RowOfNodes>> scatters_;
  std::set<std::uint32_t> changed_;
};

}  // namespace

void set_apart(Step& s) { Apart(s).run(); }

}  // namespace stretto
