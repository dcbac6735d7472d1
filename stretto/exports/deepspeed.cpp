// DeepSpeed: its JSON. Stages are named in the program there, so the section `pipeline` has what PipelineModule is to
// be given.
#include <fmt/format.h>

#include "stretto/exports/inner/words.h"
#include "stretto/formats/fields.h"

namespace stretto {
namespace {

constexpr Counterpart deepspeed_keys[] = {
    {"train.batch", "train_batch_size", "deepspeed/runtime/constants.py"},
    {"train.microbatches", "train_micro_batch_size_per_gpu", "deepspeed/runtime/constants.py"},
    {"train.microbatches", "gradient_accumulation_steps", "deepspeed/runtime/constants.py"},
    {"train.clip", "gradient_clipping", "deepspeed/runtime/constants.py"},
    {"train.dtype", "bf16.enabled", "deepspeed/runtime/precision_config.py"},
    {"parallel.zero", "zero_optimization.stage", "deepspeed/runtime/zero/config.py"},
    {"parallel.tensor", "tensor_parallel.autotp_size", "deepspeed/runtime/tensor_parallel/config.py"},
    {"parallel.pipe", "pipeline.stages", "deepspeed/runtime/config.py"},
    {"parallel.stages", "pipeline.partition", "deepspeed/runtime/config.py"},
    {"parallel.recompute", "pipeline.activation_checkpoint_interval", "deepspeed/runtime/config.py"},
};
constexpr SameName deepspeed_schedules[] = {{"1f1b", ""}};
constexpr SameName deepspeed_recompute[] = {{"none", "0"}, {"layer", "1"}};
constexpr int deepspeed_zero[] = {0, 1, 2, 3};

std::string refused_by_deepspeed(const ModelConfig&, const RunKeys& k) {
  // The pipeline's engine refuses cut gradients (deepspeed/runtime/pipe/engine.py).
  if (k.pipe > 1 && k.zero > 1)
    return fmt::format("zero = {} cuts gradients, which pipelines there do not have", k.zero);
  if (k.pipe > 1 && k.tensor > 1) return "tensor ranks of a pipeline are the program's own affair there";
  if (k.pipe == 1 && k.recompute != Recompute::none)
    return "without a pipeline the program itself says what is made again";
  return "";
}

std::string deepspeed_text(const PlanToWrite& p) {
  const RunKeys& k = p.keys;
  Field root{Field::Table{}};
  root.set("train_batch_size", p.batch);
  root.set("train_micro_batch_size_per_gpu", p.rows());
  root.set("gradient_accumulation_steps", k.microbatches);
  root.set("gradient_clipping", p.clip);
  root.set("bf16.enabled", p.dtype == bf16);
  root.set("zero_optimization.stage", k.zero);
  if (k.tensor > 1) root.set("tensor_parallel.autotp_size", k.tensor);
  if (k.pipe > 1) {
    root.set("pipeline.stages", k.pipe);
    root.set("pipeline.partition", "type:layer");
    root.set("pipeline.activation_checkpoint_interval", k.recompute == Recompute::layer ? 1 : 0);
  }
  return write_json(root, 2) + "\n";
}

}  // namespace

extern constinit const Target deepspeed_target{.name = "deepspeed",
                                               .version = "deepspeed 0.19.8",
                                               .extension = ".json",
                                               .keys = deepspeed_keys,
                                               .schedules = deepspeed_schedules,
                                               .recompute = deepspeed_recompute,
                                               .zero = deepspeed_zero,
                                               .context = false,
                                               .expert = false,
                                               .sequence = false,
                                               .whole_stages = true,
                                               .refuses = refused_by_deepspeed,
                                               .text = deepspeed_text};

}  // namespace stretto
