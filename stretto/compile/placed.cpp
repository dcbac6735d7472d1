#include "stretto/compile/placed.h"

#include <algorithm>
#include <utility>

#include "stretto/base/text.h"
#include "stretto/compile/inner/chunks.h"

namespace stretto {
namespace {

int ranks_beside_pipe(const Mesh& mesh) {
  int ranks = 1;
  for (const Axis& a : mesh)
    if (a.name != "pipe") ranks *= std::max(1, a.size);
  return ranks;
}

// Whether there is anything to split, or at least names to check.
bool laid_out(const Parallel& p) {
  return ranks_beside_pipe(p.mesh) > 1 || !p.layout.empty() || !p.storage.state.empty();
}

}  // namespace

Parallel complete(Parallel p, const Traced& t) {
  NamedLayout named = layout_of(std::exchange(p.names, {}), t.step.graph.dims, t.batch);
  for (const Axis& a : named.mesh) {
    if (std::any_of(p.mesh.begin(), p.mesh.end(), [&](const Axis& x) { return x.name == a.name; }))
      throw Error("mesh", "axis '{}' is given twice: in the mesh and by its short name", a.name)
          .hint("leave one out")
          .about({"parallel.mesh." + a.name});
    p.mesh.push_back(a);
  }
  const auto given = [&](const LayoutEntry& e) {
    return std::any_of(p.layout.begin(), p.layout.end(), [&](const LayoutEntry& x) { return x.dim == e.dim; });
  };
  std::erase_if(named.layout, given);
  p.layout.insert(p.layout.begin(), named.layout.begin(), named.layout.end());
  for (const auto& [to, from] : {std::pair{&p.storage.state, &named.storage.state},
                                 {&p.storage.gradients, &named.storage.gradients},
                                 {&p.storage.params, &named.storage.params}})
    for (const std::string& axis : *from)
      if (std::find(to->begin(), to->end(), axis) == to->end()) to->push_back(axis);
  if (p.reshard == Reshard::step && p.storage.params.empty())
    throw Error("parallel", "reshard = \"step\" keeps parameters gathered for a step, and none are cut over ranks")
        .hint("cut them (zero = 3, or depth), or leave reshard out")
        .about({"parallel.reshard"});
  return p;
}

int expert_ranks(const Parallel& p) {
  int ranks = p.names.expert;
  for (const LayoutEntry& e : p.layout)
    if (e.dim == "experts") {
      ranks = 1;
      for (const std::string& a : e.axes)
        ranks *= a == "expert" ? std::max(p.names.expert, p.mesh.extent(a)) : p.mesh.extent(a);
    }
  return ranks;
}

ExpertRows expert_rows(const Parallel& p, const Training& t) {
  if (p.expert_rows != ExpertRows::automatic) return p.expert_rows;
  if (!t.skip_nonfinite) return ExpertRows::gather;        // a step without room could not be made again
  if (t.segments.number() > 1) return ExpertRows::gather;  // rows of all positions would travel together
  const auto of = [&](std::string_view dim) { return std::ranges::find(p.layout, dim, &LayoutEntry::dim); };
  const auto experts = of("experts"), batch = of("batch");
  if (experts == p.layout.end()) return p.expert_rows;  // by name: they lie where they should
  const bool fits = batch != p.layout.end() && batch->axes.size() >= experts->axes.size() &&
                    std::equal(experts->axes.rbegin(), experts->axes.rend(), batch->axes.rbegin());
  return fits ? p.expert_rows : ExpertRows::gather;
}

AxisNames axes_of_rows(const Parallel& p, const std::string& batch) {
  AxisNames axes;
  for (const LayoutEntry& e : p.layout)
    if (e.dim == batch)
      for (const std::string& a : e.axes)
        if (p.mesh.extent(a) > 1) axes.push_back(a);
  return axes;
}

int ranks_along(const Mesh& mesh, const AxisNames& axes) {
  int ranks = 1;
  for (const std::string& a : axes) ranks *= mesh.extent(a);
  return ranks;
}

void check_rows(const Traced& t, const Parallel& p, int microbatches) {
  if (!laid_out(p)) return;
  const AxisNames axes = axes_of_rows(p, t.batch);
  const i64 ranks = ranks_along(p.mesh, axes), rows = t.rows_per_step / microbatches, unit = ranks * microbatches;
  if (rows % ranks == 0) return;
  const i64 less = t.rows_per_step / unit * unit;
  throw Error("batch",
              "{} rows per step in {} microbatches are {} rows at a time, which {} ranks along {} cannot share",
              t.rows_per_step, microbatches, rows, ranks, join(axes, ", "))
      .hint("{}", less > 0 ? fmt::format("the nearest batch sizes are {} and {}", less, less + unit)
                           : fmt::format("the nearest batch size is {}", less + unit));
}

Cluster cluster_of(const Parallel& p) {
  const int ranks = ranks_beside_pipe(p.mesh);
  return p.cluster.value_or(
      Cluster{.machine = p.machine, .inside = p.within.value_or(p.link), .between = p.link, .ranks_per_node = ranks});
}

Placed place(StepGraph step, const Parallel& p) {
  if (!laid_out(p)) return {.step = std::move(step)};
  const ShardOptions options{.storage = p.storage, .regather = p.regather, .reduce = p.reduce, .room = p.expert_room};
  Sharded of_rank = shard(step, p.mesh, p.layout, options);
  // What the layout names exists; on one rank nothing is split.
  if (ranks_beside_pipe(p.mesh) == 1) return {.step = std::move(step)};
  if (p.overlap == Overlap::chunks) of_rank = cut_products(std::move(of_rank), {.cluster = cluster_of(p)});
  auto sharded = std::make_shared<const Sharded>(std::move(of_rank));
  refuse(verify(sharded->graph));
  return {.step = sharded->graph, .sharded = std::move(sharded)};
}

}  // namespace stretto
