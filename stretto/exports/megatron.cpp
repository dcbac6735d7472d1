// Megatron-LM: command-line arguments, as an array for bash.
#include <fmt/format.h>

#include "stretto/exports/inner/words.h"

namespace stretto {
namespace {

constexpr Counterpart megatron_keys[] = {
    {"parallel.tensor", "--tensor-model-parallel-size", "megatron/core/model_parallel_config.py"},
    {"parallel.pipe", "--pipeline-model-parallel-size", "megatron/core/model_parallel_config.py"},
    {"parallel.stages", "--pipeline-model-parallel-layout", "megatron/core/transformer/transformer_config.py"},
    {"parallel.sequence", "--sequence-parallel", "megatron/core/model_parallel_config.py"},
    {"parallel.context", "--context-parallel-size", "megatron/core/model_parallel_config.py"},
    {"parallel.context", "--cp-comm-type", "megatron/core/transformer/transformer_config.py"},
    {"parallel.expert", "--expert-model-parallel-size", "megatron/core/model_parallel_config.py"},
    {"parallel.zero", "--use-distributed-optimizer", "megatron/core/distributed/distributed_data_parallel_config.py"},
    {"parallel.overlap", "--overlap-grad-reduce", "megatron/core/distributed/distributed_data_parallel_config.py"},
    {"parallel.overlap", "--overlap-param-gather", "megatron/core/distributed/distributed_data_parallel_config.py"},
    {"parallel.recompute", "--recompute-granularity", "megatron/core/transformer/transformer_config.py"},
    {"parallel.recompute", "--recompute-method", "megatron/core/transformer/transformer_config.py"},
    {"parallel.recompute", "--recompute-num-layers", "megatron/core/transformer/transformer_config.py"},
    {"train.microbatches", "--micro-batch-size", "megatron/training/arguments.py"},
    {"train.batch", "--global-batch-size", "megatron/training/arguments.py"},
    {"train.dtype", "--bf16", "megatron/core/model_parallel_config.py"},
    {"train.clip", "--clip-grad", "megatron/core/optimizer/optimizer_config.py"},
    {"model.layers", "--num-layers", "megatron/core/transformer/transformer_config.py"},
    {"model.context", "--seq-length", "megatron/training/arguments.py"},
};
constexpr SameName megatron_schedules[] = {{"1f1b", ""}, {"interleaved-1f1b", ""}};
constexpr SameName megatron_recompute[] = {{"none", ""}, {"selective", "selective"}, {"layer", "full"}};
constexpr int megatron_zero[] = {0, 1};

std::string refused_by_megatron(const ModelConfig&, const RunKeys& k) {
  // The last group of microbatches must be whole (megatron/core/pipeline_parallel/schedules.py).
  if (k.chunks > 1 && k.microbatches % k.pipe != 0)
    return fmt::format("interleaved stages need microbatches in whole groups of {}", k.pipe);
  if (k.expert > 1 && k.tensor > 1 && !k.sequence) return "experts beside tensor ranks need sequence parallelism";
  return "";
}

// "Ettt|tttt|tttL"
std::string layout_of(const std::vector<StageLayers>& stages) {
  std::string text;
  for (const StageLayers& s : stages) {
    if (s.first > 0 || !s.embedding) text += '|';
    if (s.embedding) text += 'E';
    text += std::string(s.layers, 't');
    if (s.head) text += 'L';
  }
  return text;
}

std::string megatron_text(const PlanToWrite& p) {
  const RunKeys& k = p.keys;
  std::string lines;
  const auto add = [&](auto... words) {
    lines += "  ";
    std::string_view between = "";
    ((lines += fmt::format("{}{}", between, words), between = " "), ...);
    lines += '\n';
  };
  add("--num-layers", p.model.layers);
  add("--seq-length", p.model.context);
  add("--micro-batch-size", p.rows());
  add("--global-batch-size", p.batch);
  if (p.dtype == bf16) add("--bf16");
  add("--clip-grad", p.clip);
  add("--tensor-model-parallel-size", k.tensor);
  if (k.sequence) add("--sequence-parallel");
  add("--pipeline-model-parallel-size", k.pipe);
  if (k.pipe > 1) add("--pipeline-model-parallel-layout", "'" + layout_of(p.stages) + "'");
  if (k.context > 1) add("--context-parallel-size", k.context), add("--cp-comm-type", "all_gather");
  if (k.expert > 1) add("--expert-model-parallel-size", k.expert);
  if (k.zero == 1) add("--use-distributed-optimizer");
  if (k.data * k.expert * k.context > 1) add("--overlap-grad-reduce");
  if (k.zero == 1) add("--overlap-param-gather");
  if (k.recompute == Recompute::selective) add("--recompute-granularity", "selective");
  if (k.recompute == Recompute::layer)
    add("--recompute-granularity", "full"), add("--recompute-method", "uniform"), add("--recompute-num-layers", 1);
  return exports::commented(p, "Megatron-LM, as of megatron-core 0.16.1") +
         fmt::format(
             "# source this file, then: torchrun --nnodes=... --nproc-per-node=... pretrain_gpt.py "
             "\"${{MEGATRON_ARGS[@]}}\" ...\n"
             "# It runs on {} ranks; data parallelism takes what the arguments leave, {}.\nMEGATRON_ARGS=(\n{})\n",
             k.ranks(), k.data * k.expert, lines);
}

}  // namespace

extern constinit const Target megatron_target{.name = "megatron",
                                              .version = "megatron-core 0.16.1",
                                              .extension = ".sh",
                                              .keys = megatron_keys,
                                              .schedules = megatron_schedules,
                                              .recompute = megatron_recompute,
                                              .zero = megatron_zero,
                                              .refuses = refused_by_megatron,
                                              .text = megatron_text};

}  // namespace stretto
