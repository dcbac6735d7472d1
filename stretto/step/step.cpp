#include <algorithm>
#include <set>

#include "stretto/base/match.h"
#include "stretto/ir/op.h"
#include "stretto/step/step.h"

namespace stretto {

std::string_view name_of(Part p) {
  constexpr std::string_view names[] = {"count", "scale", "U",       "F",    "R",      "I",    "W",      "S",    "A",
                                        "carry", "sum",   "combine", "norm", "finite", "clip", "update", "total"};
  return names[static_cast<int>(p)];
}

std::string str(const Task& t) {
  const std::string name =
      t.piece ? fmt::format("{}{}", name_of(t.part), t.piece->value) : std::string(name_of(t.part));
  return match(
      t.about, [&](std::monostate) { return name; },
      [&](ParamId p) { return fmt::format("{} of parameter {}", name, p.value); },
      [&](OutputId o) { return fmt::format("{} of output {}", name, o.value); },
      [&](TermId x) { return fmt::format("{} of loss term {}", name, x.value); },
      [&](LossOfPipe x) { return fmt::format("{} of loss term {}, pipe {}", name, x.term.value, x.pipe.value); },
      [&](Gathered g) { return fmt::format("{} {}", name, g == Gathered::whole ? "whole" : "for backward"); },
      [&](Level l) { return fmt::format("{} of level {}", name, l.value); },
      [&](BucketId b) { return fmt::format("{} of bucket {}", name, b.value); });
}

i64 Step::elements(const Type& t) const {
  i64 n = 1;
  for (DimId d : t.dims) n *= dims[d.value].size;
  return n;
}
std::size_t Step::bytes(const Type& t) const { return elements(t) * size_of(t.dtype); }

const Task* Step::find(Part part, PieceId piece) const {
  for (const Task& t : tasks)
    if (t.part == part && t.piece == piece) return &t;
  return nullptr;
}

namespace {

bool exists(const Step& s, const Binding& b) {
  return match(
      b, [&](ValueId v) { return s.values.has(v); }, [&](ParamId p) { return s.params.has(p); },
      [&](InputId i) { return s.inputs.has(i); }, [&](ScalarId x) { return s.scalars.has(x); },
      [&](AccumulatorId a) { return s.accumulators.has(a); }, [&](BucketId x) { return s.buckets.has(x); },
      [&](OutputId o) { return s.outputs.has(o); }, [&](AllMicrobatches x) { return s.outputs.has(x.output); },
      [&](StateId x) { return s.params.has(x.param); }, [&](SquareId x) { return x.value < s.squares; },
      [](AllSquares) { return true; });
}

// As many bindings as arguments and results, and each is of something that the step has.
void check_bindings(const Step& s, const Task& t, std::vector<Fault>& faults) {
  const std::string where = "task " + str(t);
  std::size_t arguments = 0;
  for (const Node& n : t.body->nodes) arguments += n.op->leaf == Leaf::argument;
  if (arguments != t.inputs.size())
    faults.push_back(fault(where, "", "has {} arguments and {} bindings", arguments, t.inputs.size()));
  if (t.body->outputs.size() != t.outputs.size())
    faults.push_back(fault(where, "", "has {} results and {} bindings", t.body->outputs.size(), t.outputs.size()));
  for (auto i : t.inputs.ids())
    if (!exists(s, t.inputs[i])) faults.push_back(fault(where, "", "argument {} is bound to nothing", i.value));
  for (auto i : t.outputs.ids())
    if (!exists(s, t.outputs[i])) faults.push_back(fault(where, "", "result {} is bound to nothing", i.value));
}

// A value is made by its producer and read by its consumers, and by nobody else.
void check_values(const Step& s, std::vector<Fault>& faults) {
  IdVector<ValueId, std::vector<TaskId>> readers(s.values.size()), makers(s.values.size());  // ascending, each once
  const auto note = [&](const Binding& b, TaskId t, IdVector<ValueId, std::vector<TaskId>>& of) {
    const ValueId* v = as<ValueId>(b);
    if (v && s.values.has(*v) && (of[*v].empty() || of[*v].back() != t)) of[*v].push_back(t);
  };
  for (TaskId t : s.tasks.ids()) {
    for (const Binding& b : s.tasks[t].inputs) note(b, t, readers);
    for (const Binding& b : s.tasks[t].outputs) note(b, t, makers);
  }
  for (ValueId v : s.values.ids()) {
    const CrossValue& x = s.values[v];
    if (!std::binary_search(makers[v].begin(), makers[v].end(), x.producer))
      faults.push_back(fault("value " + x.name, "", "is not made by the task that is said to make it"));
    std::vector<TaskId> consumers = x.consumers;
    std::sort(consumers.begin(), consumers.end());
    consumers.erase(std::unique(consumers.begin(), consumers.end()), consumers.end());
    if (consumers != readers[v])
      faults.push_back(fault("value " + x.name, "", "is read by {} tasks and not by those {} that are said to read it",
                             readers[v].size(), x.consumers.size()));
  }
}

}  // namespace

std::vector<Fault> verify(const Step& s) {
  std::vector<Fault> faults;
  std::set<const Graph*> checked;  // equal bodies share the pointer
  for (const Task& t : s.tasks) {
    check_bindings(s, t, faults);
    if (!checked.insert(t.body.get()).second) continue;
    for (Fault& f : verify(*t.body)) f.where = "task " + str(t) + ", " + f.where, faults.push_back(std::move(f));
  }
  check_values(s, faults);
  return faults;
}

}  // namespace stretto
