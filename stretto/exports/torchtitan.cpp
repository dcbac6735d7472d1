// torchtitan: sections of its TOML.
#include <fmt/format.h>

#include "stretto/exports/inner/words.h"
#include "stretto/formats/fields.h"

namespace stretto {
namespace {

constexpr std::string_view titan_source = "torchtitan/config/job_config.py";
constexpr Counterpart titan_keys[] = {
    {"parallel.data", "parallelism.data_parallel_replicate_degree", titan_source},
    {"parallel.zero", "parallelism.data_parallel_shard_degree", titan_source},
    {"parallel.zero", "parallelism.fsdp_reshard_after_forward", titan_source},
    {"parallel.tensor", "parallelism.tensor_parallel_degree", titan_source},
    {"parallel.pipe", "parallelism.pipeline_parallel_degree", titan_source},
    {"parallel.schedule", "parallelism.pipeline_parallel_schedule", titan_source},
    {"train.microbatches", "parallelism.pipeline_parallel_microbatch_size", titan_source},
    {"parallel.stages", "parallelism.module_fqns_per_model_part", titan_source},
    {"parallel.context", "parallelism.context_parallel_degree", titan_source},
    {"parallel.context", "parallelism.context_parallel_rotate_method", titan_source},
    {"parallel.expert", "parallelism.expert_parallel_degree", titan_source},
    {"parallel.recompute", "activation_checkpoint.mode", titan_source},
    {"parallel.recompute", "activation_checkpoint.selective_ac_option", titan_source},
    {"train.batch", "training.local_batch_size", titan_source},
    {"train.batch", "training.global_batch_size", titan_source},
    {"model.context", "training.seq_len", titan_source},
    {"train.clip", "training.max_norm", titan_source},
    {"train.dtype", "training.mixed_precision_param", titan_source},
};
constexpr SameName titan_schedules[] = {{"gpipe", "GPipe"},
                                        {"1f1b", "1F1B"},
                                        {"interleaved-1f1b", "Interleaved1F1B"},
                                        {"looped-bfs", "LoopedBFS"},
                                        {"interleaved-zb", "InterleavedZeroBubble"},
                                        {"zb-v", "ZBVZeroBubble"},
                                        {"dualpipe-v", "DualPipeV"}};
constexpr SameName titan_recompute[] = {{"none", "none"}, {"selective", "selective"}, {"layer", "full"}};
constexpr int titan_zero[] = {0, 2, 3};

std::string refused_by_titan(const ModelConfig&, const RunKeys& k) {
  if (k.tensor > 1 && !k.sequence) return "tensor ranks always share positions between products";
  if (k.expert > 1 && k.zero == 0) return "experts are shared by ranks that parameters are cut over";
  if (k.context > 1 && k.zero == 0) return "positions are shared by ranks that parameters are cut over";
  return "";
}

// The modules of each stage, by the names that its Llama has.
Field::Array parts_of(const std::vector<StageLayers>& stages) {
  Field::Array parts;
  for (const StageLayers& s : stages) {
    Field::Array names;
    if (s.embedding) names.push_back("tok_embeddings");
    for (i64 i = 0; i < s.layers; ++i) names.push_back(fmt::format("layers.{}", s.first + i));
    if (s.head) names.push_back("norm"), names.push_back("output");
    parts.push_back(std::move(names));
  }
  return parts;
}

std::string titan_text(const PlanToWrite& p) {
  const RunKeys& k = p.keys;
  const int data = k.data * k.expert;  // experts borrow from it
  Field root{Field::Table{}};
  root.set("training.seq_len", p.model.context);
  root.set("training.local_batch_size", k.pipe > 1 ? p.batch / data : p.rows());
  root.set("training.global_batch_size", p.batch);
  root.set("training.max_norm", p.clip);
  root.set("training.mixed_precision_param", p.dtype == bf16 ? "bfloat16" : "float32");
  root.set("parallelism.data_parallel_replicate_degree", k.zero == 0 ? data : 1);
  root.set("parallelism.data_parallel_shard_degree", k.zero == 0 ? 1 : data);
  if (k.zero > 0) root.set("parallelism.fsdp_reshard_after_forward", k.zero == 3 ? "always" : "never");
  root.set("parallelism.tensor_parallel_degree", k.tensor);
  root.set("parallelism.context_parallel_degree", k.context);
  if (k.context > 1) root.set("parallelism.context_parallel_rotate_method", "allgather");
  root.set("parallelism.expert_parallel_degree", k.expert);
  root.set("parallelism.pipeline_parallel_degree", k.pipe);
  if (k.pipe > 1) {
    root.set("parallelism.pipeline_parallel_schedule", std::string(exports::theirs(titan_schedules, k.schedule)));
    root.set("parallelism.pipeline_parallel_microbatch_size", p.rows());
    root.set("parallelism.module_fqns_per_model_part", parts_of(p.stages));
  }
  root.set("activation_checkpoint.mode", std::string(exports::theirs(titan_recompute, name_of(k.recompute))));
  if (k.recompute == Recompute::selective) root.set("activation_checkpoint.selective_ac_option", "op");
  return exports::commented(p, "torchtitan 0.2.2, the last that reads TOML") +
         fmt::format(
             "# With [model] added: torchrun --nproc-per-node=... -m torchtitan.train --job.config_file THIS, on "
             "{} ranks.\n",
             k.ranks()) +
         write_toml(root);
}

}  // namespace

extern constinit const Target torchtitan_target{.name = "torchtitan",
                                                .version = "torchtitan 0.2.2",
                                                .extension = ".toml",
                                                .keys = titan_keys,
                                                .schedules = titan_schedules,
                                                .recompute = titan_recompute,
                                                .zero = titan_zero,
                                                .refuses = refused_by_titan,
                                                .text = titan_text};

}  // namespace stretto
