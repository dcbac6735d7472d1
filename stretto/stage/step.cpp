#include <set>

#include "stretto/ir/op.h"
#include "stretto/stage/task.h"

namespace stretto {

std::string_view name_of(Part p) {
  constexpr std::string_view names[] = {"count", "scale", "U",       "F",    "R",    "I",      "W",    "S",
                                        "A",     "carry", "combine", "norm", "clip", "update", "total"};
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

std::vector<Fault> verify(const Step& s) {
  std::vector<Fault> faults;
  std::set<const Graph*> checked;  // equal bodies share the pointer
  for (std::size_t t = 0; t < s.tasks.size(); ++t) {
    const Task& task = s.tasks[t];
    const std::string where = fmt::format("task {}{}", name_of(task.part), task.piece);
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
