// JaxPP: a module in Python with the mesh, the schedule, and after which layers stages end.
#include <fmt/format.h>

#include "stretto/exports/inner/words.h"

namespace stretto {
namespace {

constexpr Counterpart jaxpp_keys[] = {
    {"parallel.pipe", "MpmdMesh", "src/jaxpp/mesh.py"},
    {"parallel.schedule", "Std1F1B", "src/jaxpp/schedules.py"},
    {"parallel.schedule", "Eager1F1B", "src/jaxpp/schedules.py"},
    {"parallel.schedule", "ZeroBubble", "src/jaxpp/schedules.py"},
    {"parallel.schedule", "Interleaved1F1B", "src/jaxpp/schedules.py"},
    {"parallel.schedule", "KimiK2", "src/jaxpp/schedules.py"},
    {"parallel.schedule", "DualPipeV", "src/jaxpp/schedules.py"},
    {"parallel.stages", "mark_stage_end", "src/jaxpp/pipelining.py"},
    {"train.microbatches", "treduce", "src/jaxpp/training.py"},
};
constexpr SameName jaxpp_schedules[] = {{"1f1b", "Std1F1B"},     {"eager-1f1b", "Eager1F1B"},
                                        {"zb-h1", "ZeroBubble"}, {"interleaved-1f1b", "Interleaved1F1B"},
                                        {"kimi-k2", "KimiK2"},   {"dualpipe-v", "DualPipeV"}};
constexpr SameName jaxpp_recompute[] = {{"none", "None"}, {"layer", "\"layer\""}};
constexpr int jaxpp_zero[] = {0, 1, 2, 3};

std::string refused_by_jaxpp(const ModelConfig&, const RunKeys& k) {
  const int stages = k.stage_count();
  if ((k.schedule == "zb-h1" || k.schedule == "dualpipe-v") && k.pipe > 1 && k.microbatches < stages)
    return fmt::format("{} needs as many microbatches as there are stages", k.schedule);
  return "";
}

std::string jaxpp_text(const PlanToWrite& p) {
  const RunKeys& k = p.keys;
  const bool several = k.chunks > 1;
  std::vector<i64> ends;
  for (const StageLayers& s : p.stages)
    if (!s.head) ends.push_back(s.first + s.layers);
  std::string text = exports::commented(p, "JaxPP 0.9.2");
  text += fmt::format(
      "# Tensor and data axes are JAX's own: shard heads, ff and vocabulary over \"tensor\", rows over "
      "\"data\".\nimport jax\nimport numpy as np\n{}\n",
      k.pipe > 1 ? "import jaxpp.api as jaxpp\n" : "");
  text += fmt::format("shape, axes = ({}, {}, {}), (\"pipe\", \"data\", \"tensor\")\n", k.pipe, k.data, k.tensor);
  text += fmt::format("microbatches = {}  # of {} sequences on each data rank\n", k.microbatches, p.rows());
  if (k.tensor > 1) text += "sequence = True  # between products positions are split over \"tensor\"\n";
  text +=
      fmt::format("zero = {}  # over \"data\" are cut: 1 optimizer state, 2 gradients too, 3 parameters too\n", k.zero);
  text += fmt::format("remat = {}  # \"layer\": jax.checkpoint around each layer\n",
                      exports::theirs(jaxpp_recompute, name_of(k.recompute)));
  if (k.pipe > 1) {
    text += fmt::format("stage_ends = {{{}}}  # layers after which x = jaxpp.mark_stage_end(x); 0: the embedding\n",
                        fmt::join(ends, ", "));
    text += fmt::format("schedule = jaxpp.{}(num_stages={}{})  # for jaxpp.treduce(..., schedule=schedule)\n",
                        exports::theirs(jaxpp_schedules, k.schedule), k.stage_count(),
                        several ? fmt::format(", mpmd_dim={}", k.pipe) : "");
  }
  text +=
      "\n\ndef mesh(devices=None):\n"
      "    devices = np.array(jax.devices() if devices is None else devices).reshape(shape)\n";
  return text + (k.pipe > 1 ? "    return jaxpp.MpmdMesh(jax.sharding.Mesh(devices, axes), \"pipe\")\n"
                            : "    return jax.sharding.Mesh(devices, axes)\n");
}

}  // namespace

extern constinit const Target jaxpp_target{.name = "jaxpp",
                                           .version = "jaxpp 0.9.2",
                                           .extension = ".py",
                                           .keys = jaxpp_keys,
                                           .schedules = jaxpp_schedules,
                                           .recompute = jaxpp_recompute,
                                           .zero = jaxpp_zero,
                                           .context = false,
                                           .expert = false,
                                           .refuses = refused_by_jaxpp,
                                           .text = jaxpp_text};

}  // namespace stretto
