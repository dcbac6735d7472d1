#include <set>

#include "stretto/base/match.h"
#include "stretto/ir/op.h"
#include "stretto/stage/step.h"

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

std::size_t Step::bytes(const Type& t) const {
  std::size_t n = size_of(t.dtype);
  for (DimId d : t.dims) n *= dims[d.value].size;
  return n;
}

const Task* Step::find(Part part, PieceId piece) const {
  for (const Task& t : tasks)
    if (t.part == part && t.piece == piece) return &t;
  return nullptr;
}

std::vector<Fault> verify(const Step& s) {
  std::vector<Fault> faults;
  std::set<const Graph*> checked;  // equal bodies share the pointer
  for (const Task& task : s.tasks) {
    const std::string where = "task " + str(task);
    std::size_t arguments = 0;
    for (const Node& n : task.body->nodes) arguments += n.op->leaf == Leaf::argument;
    if (arguments != task.inputs.size())
      faults.push_back(fault(where, "", "has {} arguments and {} bindings", arguments, task.inputs.size()));
    if (task.body->outputs.size() != task.outputs.size())
      faults.push_back(
          fault(where, "", "has {} results and {} bindings", task.body->outputs.size(), task.outputs.size()));
    if (!checked.insert(task.body.get()).second) continue;
    for (Fault& f : verify(*task.body)) f.where = where + ", " + f.where, faults.push_back(std::move(f));
  }
  return faults;
}

}  // namespace stretto
