#include "stretto/shard/layout_of.h"

#include <algorithm>

#include "stretto/base/error.h"

namespace stretto {
namespace {

void check(const ParallelNames& n) {
  std::vector<Fault> faults;
  for (const auto& [size, name] : {std::pair{n.data, "data"},
                                   {n.replicas, "replicas"},
                                   {n.tensor, "tensor"},
                                   {n.expert, "expert"},
                                   {n.context, "context"},
                                   {n.depth, "depth"}})
    if (size < 1)
      faults.push_back(
          fault("parallel", "sizes are at least 1", "{} is {}", name, size).about({fmt::format("parallel.{}", name)}));
  if (n.zero < 0 || n.zero > 3)
    faults.push_back(fault("parallel", "use 0, 1, 2 or 3", "zero is {}", n.zero).about({"parallel.zero"}));
  if (n.zero > 0 && n.data == 1)
    faults.push_back(fault("parallel", "use data = 2 or more, or zero = 0",
                           "zero = {} cuts over the data axis, and data is 1", n.zero)
                         .about({"parallel.zero"}));
  if (n.sequence && n.tensor == 1)
    faults.push_back(fault("parallel", "use tensor = 2 or more, or leave sequence out",
                           "sequence splits over the tensor axis, and tensor is 1")
                         .about({"parallel.sequence"}));
  if (n.exchange && n.context == 1)
    faults.push_back(fault("parallel", "use context = 2 or more, or leave exchange out",
                           "exchange is a way to split over the context axis, and context is 1")
                         .about({"parallel.exchange"}));
  refuse(std::move(faults));
}

}  // namespace

Mesh axes_of(const ParallelNames& n) {
  Mesh mesh;
  for (const auto& [name, size] : {std::pair{"replica", n.replicas},
                                   {"data", n.data},
                                   {"depth", n.depth},
                                   {"expert", n.expert},
                                   {"context", n.context},
                                   {"tensor", n.tensor}})
    if (size > 1) mesh.push_back({name, size});
  return mesh;
}

NamedLayout layout_of(const ParallelNames& n, const std::vector<Dim>& dims, const std::string& batch) {
  check(n);
  NamedLayout r{.mesh = axes_of(n)};
  const auto find = [&](const std::string& name) -> const Dim* {
    const auto it = std::find_if(dims.begin(), dims.end(), [&](const Dim& d) { return d.name == name; });
    return it == dims.end() ? nullptr : &*it;
  };
  const auto map = [&](const std::string& name, std::initializer_list<const char*> axes) {
    Axes there;
    for (const char* a : axes)
      if (r.mesh.extent(a) > 1) there.push_back(a);
    if (find(name)) r.layout.push_back({name, there});
  };
  map(batch, {"replica", "data", "depth", "expert"});
  map("experts", {"expert"});
  for (const char* wide : {"ff", "ff_x", "ff_s", "vocab"}) map(wide, {"tensor"});
  // Of grouped heads those that have keys of their own are split, or, if there are too few, the queries of a group.
  std::string heads = "heads";
  if (const Dim* kv = find("kv"), *group = find("group"); kv && group)
    heads = kv->size % n.tensor != 0 && group->size % n.tensor == 0 ? "group" : "kv";
  map(heads, {"tensor"});
  map("seq", {"context"});
  if (n.sequence) map("seq_r", {"context", "tensor"});
  if (n.exchange) {
    map(heads + "_q", {"tensor", "context"});
    map("seq_q", {});
  }
  std::erase_if(r.layout, [](const LayoutEntry& e) { return e.axes.empty() && e.dim != "seq_q"; });

  if (n.depth > 1) r.storage.state.push_back("depth");
  if (n.depth > 1) r.storage.params.push_back("depth");
  if (n.zero > 0) r.storage.state.push_back("data");
  if (n.zero > 1) r.storage.gradients = r.storage.state;
  if (n.zero > 2) r.storage.params = r.storage.state;
  return r;
}

}  // namespace stretto
