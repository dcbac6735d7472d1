// Makes one task: arguments and results, each with its binding, and between them the body that is computed.
//
//   TaskBuilder t({.part = Part::norm, .about = param});
//   const Tensor gradient = t.argument(f32, {flat}, accumulator);
//   t.result(squared_norm(gradient), square);
//   step.tasks.push_back(std::move(t).finish(pool));
//
// A task that exists is opened in the same way, changed, and finished again.
#pragma once
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "stretto/ir/tensor.h"
#include "stretto/step/step.h"

namespace stretto {

// Bodies are shared: returns the pointer of an equal graph seen before, or keeps this one.
class BodyPool {
 public:
  std::shared_ptr<const Graph> share(Graph g);

 private:
  std::unordered_map<u64, std::shared_ptr<const Graph>> known_;  // by hash
};

class TaskBuilder {
 public:
  explicit TaskBuilder(Task);             // with a body: a task that exists
  TaskBuilder(Task head, Builder& body);  // a body that others add to as well, for example a Trace's
  Builder& body() { return *body_; }
  Graph& graph() { return body_->graph; }
  const Graph& graph() const { return body_->graph; }
  Task& head() { return task_; }  // all but body and bindings
  const Task& head() const { return task_; }

  Tensor argument(DType, const Dims&, Binding from);
  // In the body's own dims. Its binding may be given later.
  Value argument(const Type&);
  Value argument(const Type&, Binding from);
  void make_argument(NodeId, Binding from);  // what was computed becomes an argument
  void bind(Value argument, Binding from);   // also an `input` node that somebody else made
  void rebind(const Binding& old, const Binding& now);
  const Binding* binding_of(Value) const;  // none: it is no argument
  std::vector<Binding> arguments() const;  // in their order

  NodeId add(Node);  // operands and types as in this body

  // Results have memory of their own: arguments, views and what is a result already are copied.
  void result(Tensor, Binding to);
  void result(Value, Binding to);
  void replace_result(ResultId, Value, Binding to);
  void drop_result(ResultId);

  // Drops what no result needs; returns the bindings of arguments that are gone.
  std::vector<Binding> prune();

  // Arguments are numbered in the order of their nodes; each must have its binding.
  Task finish(BodyPool&) &&;

 private:
  Value own_memory(Value);

  Task task_;
  std::unique_ptr<Builder> own_;
  Builder* body_;
  std::map<NodeId, Binding> from_;
};

}  // namespace stretto
