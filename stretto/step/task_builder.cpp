#include "stretto/step/task_builder.h"

#include <algorithm>
#include <utility>

#include "stretto/ops/copy.h"
#include "stretto/ops/input.h"
#include "stretto/ops/ops.h"

namespace stretto {
namespace {

Node argument_node(const Type& type) {
  return {.op = &input_op, .attrs = InputAttrs{.dtype = type.dtype, .dims = type.dims}, .results = {type}};
}

}  // namespace

std::shared_ptr<const Graph> BodyPool::share(Graph g) {
  std::shared_ptr<const Graph>& body = known_[g.hash()];
  if (!body) body = std::make_shared<const Graph>(std::move(g));
  return body;
}

TaskBuilder::TaskBuilder(Task task) : task_(std::move(task)), own_(std::make_unique<Builder>()), body_(own_.get()) {
  if (!task_.body) return;
  own_->graph = *std::exchange(task_.body, nullptr);
  auto from = task_.inputs.begin();
  for (NodeId id : ids_until<NodeId>(graph().nodes.size()))
    if (graph().node(id).op->leaf == Leaf::argument) from_[id] = *from++;
  task_.inputs.clear();
}
TaskBuilder::TaskBuilder(Task head, Builder& body) : task_(std::move(head)), body_(&body) {}

Tensor TaskBuilder::argument(DType dtype, const Dims& dims, Binding from) {
  const Tensor t = input(*body_, "argument", dtype, dims);
  bind(t.value, from);
  return t;
}
Value TaskBuilder::argument(const Type& type) { return {add(argument_node(type)), 0}; }
Value TaskBuilder::argument(const Type& type, Binding from) {
  const Value v = argument(type);
  bind(v, from);
  return v;
}
void TaskBuilder::make_argument(NodeId id, Binding from) {
  graph().nodes[id.value] = argument_node(graph().node(id).results[0]);
  from_[id] = from;
}
void TaskBuilder::bind(Value argument, Binding from) { from_[argument.node] = from; }
void TaskBuilder::rebind(const Binding& old, const Binding& now) {
  for (auto& [node, from] : from_)
    if (from == old) from = now;
}
const Binding* TaskBuilder::binding_of(Value v) const {
  const auto it = from_.find(v.node);
  return it == from_.end() ? nullptr : &it->second;
}

std::vector<Binding> TaskBuilder::arguments() const {
  std::vector<Binding> all;
  for (const auto& [node, from] : from_) all.push_back(from);
  return all;
}

NodeId TaskBuilder::add(Node n) {
  graph().nodes.push_back(std::move(n));
  return NodeId(graph().nodes.size() - 1);
}

Value TaskBuilder::own_memory(Value v) {
  const Node& n = graph().node(v);
  const auto& results = graph().outputs;
  if (n.op->leaf != Leaf::argument && !n.op->view && std::find(results.begin(), results.end(), v) == results.end())
    return v;
  return {add({.op = &copy_op, .operands = {v}, .results = {graph().type(v)}}), 0};
}
void TaskBuilder::result(Tensor t, Binding to) { result(t.value, to); }
void TaskBuilder::result(Value v, Binding to) {
  graph().outputs.push_back(own_memory(v));
  task_.outputs.push_back(to);
}
void TaskBuilder::replace_result(ResultId position, Value v, Binding to) {
  graph().outputs[position.value] = own_memory(v);
  task_.outputs[position] = to;
}
void TaskBuilder::drop_result(ResultId position) {
  graph().outputs.erase(graph().outputs.begin() + position.value);
  task_.outputs.erase(position);
}

std::vector<Binding> TaskBuilder::prune() {
  MovedNodes moved;
  graph() = stretto::prune(graph(), &moved);
  std::vector<Binding> gone;
  for (const auto& [node, from] : std::exchange(from_, {}))
    if (const std::optional<NodeId> now = moved[node.value])
      from_[*now] = from;
    else
      gone.push_back(from);
  return gone;
}

Task TaskBuilder::finish(BodyPool& pool) && {
  for (NodeId id : ids_until<NodeId>(graph().nodes.size())) {
    Node& n = graph().nodes[id.value];
    if (n.op->leaf != Leaf::argument) continue;
    const auto from = from_.find(id);
    STRETTO_ASSERT(from != from_.end(), "an argument without a binding");
    const InputAttrs& a = n.attrs.as<InputAttrs>();
    n.attrs = InputAttrs{.name = std::to_string(task_.inputs.size()), .dtype = a.dtype, .dims = a.dims};
    task_.inputs.push_back(from->second);
  }
  task_.body = pool.share(std::move(graph()));
  return std::move(task_);
}

}  // namespace stretto
