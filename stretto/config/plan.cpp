#include "stretto/config/plan.h"

#include <algorithm>

#include "stretto/formats/fields.h"
#include "stretto/graphs/graph_file.h"
#include "stretto/schedule/builders.h"

namespace stretto {
namespace {

bool searched(const RunConfig& c, std::string_view key) {
  return std::find(c.searched.begin(), c.searched.end(), key) != c.searched.end();
}

Recompute recompute_named(std::string_view name) {
  for (const Recompute r : by_what_is_kept)
    if (name_of(r) == name) return r;
  return Recompute::none;
}

// Axes that are not among those that a plan chooses.
void refuse_other_axes(const ParallelSection& p) {
  std::vector<Fault> faults;
  const auto unknown = [&](bool given, const std::string& key) {
    if (given)
      faults.push_back(fault("plan", "leave it out; stretto simulate predicts a run that has it",
                             "{} is no part of what is planned", key)
                           .about({"parallel." + key}));
  };
  unknown(p.names.depth > 1, "depth");
  unknown(p.names.replicas > 1, "replicas");
  unknown(p.mesh.ranks() > 1, "mesh");
  unknown(!p.layout.empty(), "layout");
  unknown(!p.times.empty(), "times");
  refuse(std::move(faults));
}

// Of all stages: what a plan chooses stages for cannot be given per stage.
Recompute one_recompute(const RunConfig& c) {
  const std::vector<Recompute>& all = c.parallel.recompute;
  if (std::ranges::adjacent_find(all, std::not_equal_to()) != all.end())
    throw Error("plan", "recompute differs from stage to stage, and stages are what is chosen")
        .hint("use one for all stages, or \"auto\"")
        .about({"parallel.recompute"});
  return all.empty() ? Recompute::none : all.front();
}

}  // namespace

namespace {
PlannedGraph graph_of(const RunConfig& c) {
  GraphFile file = read_graph(c.model.graph);
  PlannedGraph g{.model = {},
                 .name = c.model.graph,
                 .pieces = pieces_of(file),
                 .positions = positions_of(file),
                 .parameters = parameter_count(file),
                 .experts = std::ranges::find(file.dims, "experts", &GraphDim::name) != file.dims.end(),
                 .one_microbatch = !file.one_microbatch.empty()};
  g.model = model_of(std::move(file), c.train.batch);
  return g;
}
}  // namespace

PlanProblem problem_of(const RunConfig& c, const ClusterFile& cluster, int ranks) {
  if (c.train.segments.number() > 1)
    throw Error("plan", "train.segments is {}, and nothing here chooses for sequences that are cut into segments",
                c.train.segments.number())
        .hint("leave it out; stretto simulate and stretto show memory predict such a run, as [parallel] says")
        .about({"train.segments"});
  PlanProblem p{.model = c.model.config,
                .batch = c.train.batch,
                .optimizer = optimizer_of(c),
                .training = training_of(c),
                .parallel = parallel_of(c.parallel, c.train.dtype.products),
                .cluster = cluster,
                .ranks = ranks};
  p.cluster.cluster = placed(cluster.cluster, ranks);
  p.parallel.threads = cluster.cluster.machine.threads;
  p.model.documents = c.data.documents;
  if (!c.model.graph.empty()) p.graph = graph_of(c);
  return p;
}

PlanSpace space_of(const RunConfig& c) {
  refuse_other_axes(c.parallel);
  PlanSpace s;
  const auto choose = [&](std::string_view key, const auto& open, const auto& fixed) {
    if (searched(c, key)) return open;
    if (!open.empty() && std::find(open.begin(), open.end(), fixed) == open.end())
      throw Error("plan", "{} is {}, which [plan] does not allow: {}", key, fixed, fmt::join(open, ", "))
          .hint("leave one of the two out")
          .about({std::string(key)});
    return std::vector{fixed};
  };
  const ParallelNames& n = c.parallel.names;
  s.pipe = choose("parallel.pipe", c.plan.pipe, c.parallel.pipe);
  s.data = choose("parallel.data", c.plan.data, n.data);
  s.tensor = choose("parallel.tensor", c.plan.tensor, n.tensor);
  s.context = choose("parallel.context", c.plan.context, n.context);
  s.expert = choose("parallel.expert", c.plan.expert, n.expert);
  s.zero = choose("parallel.zero", c.plan.zero, n.zero);
  s.microbatches = choose("train.microbatches", c.plan.microbatches, c.train.microbatches);
  s.chunks = choose("parallel.chunks", c.plan.chunks, c.parallel.chunks);
  if (s.chunks == std::vector{0}) s.chunks.clear();  // the schedule's default
  s.schedules = choose("parallel.schedule", c.plan.schedules, c.parallel.schedule);
  const std::string given = searched(c, "parallel.recompute") ? "" : std::string(name_of(one_recompute(c)));
  for (const std::string& name : choose("parallel.recompute", c.plan.recompute, given))
    s.recompute.push_back(recompute_named(name));
  if (!searched(c, "parallel.sequence")) s.sequence = n.sequence;
  return s;
}

RunKeys keys_of_run(const RunConfig& c) {
  refuse_other_axes(c.parallel);
  const ParallelNames& n = c.parallel.names;
  RunKeys k{.pipe = c.parallel.pipe,
            .data = n.data,
            .tensor = n.tensor,
            .context = n.context,
            .expert = n.expert,
            .sequence = n.sequence,
            .zero = n.zero,
            .schedule = interned(c.parallel.schedule),
            .chunks = c.parallel.chunks,
            .microbatches = c.train.microbatches,
            .stages = c.parallel.stages};
  k.set_recompute(c.parallel.recompute);
  if (k.chunks == 0) {
    const BuilderEntry* rule = find_builder(k.schedule);
    k.chunks = k.pipe == 1 || !rule ? 1 : rule->default_chunks();
  }
  return k;
}

RunConfig with_keys(RunConfig c, const RunKeys& k) {
  ParallelNames& n = c.parallel.names;
  c.parallel.pipe = k.pipe;
  n.data = k.data, n.tensor = k.tensor, n.context = k.context, n.expert = k.expert;
  n.sequence = k.sequence;
  n.zero = k.zero;
  c.parallel.schedule = std::string(k.schedule);
  c.parallel.chunks = k.pipe > 1 ? k.chunks : 0;
  c.parallel.stages = k.pipe > 1 ? k.stages : std::vector<int>{};
  c.parallel.recompute = k.recompute_list();
  c.train.microbatches = k.microbatches;
  c.searched.clear();
  c.plan = {};
  return c;
}

Field recompute_field(const RunKeys& k) {
  if (k.recompute_each.empty()) return std::string(name_of(k.recompute));
  Field::Array each;
  for (const Recompute r : k.recompute_each) each.push_back(std::string(name_of(r)));
  return each;
}

std::vector<Member> settings_of(const RunKeys& k) {
  std::vector<Member> all{{"train.microbatches", k.microbatches},
                          {"parallel.pipe", k.pipe},
                          {"parallel.data", k.data},
                          {"parallel.tensor", k.tensor},
                          {"parallel.context", k.context},
                          {"parallel.expert", k.expert},
                          {"parallel.zero", k.zero},
                          {"parallel.sequence", k.sequence},
                          {"parallel.recompute", recompute_field(k)},
                          {"parallel.schedule", std::string(k.schedule)},
                          {"parallel.chunks", k.pipe > 1 ? k.chunks : 0}};
  if (k.pipe > 1 && !k.stages.empty())
    all.push_back({"parallel.stages", Field::Array(k.stages.begin(), k.stages.end())});
  return all;
}

std::string planned_toml(const std::string& file, const std::vector<std::string>& overrides, const RunKeys& k,
                         const std::vector<std::string>& comments) {
  Field root = file.empty() ? Field(Field::Table{}) : read_toml_file(file);
  for (const std::string& o : overrides) override_field(root, o);
  if (root.find("plan")) root.set("plan", Field());
  for (const Member& m : settings_of(k)) root.set(m.key, m.value);
  std::string text;
  for (const std::string& line : comments) text += "# " + line + "\n";
  return text + write_toml(root);
}

int fixed_ranks(const RunConfig& c) {
  for (const char* key : {"parallel.pipe", "parallel.data", "parallel.tensor", "parallel.context", "parallel.expert"})
    if (searched(c, key)) return 0;
  return keys_of_run(c).ranks();
}

}  // namespace stretto
