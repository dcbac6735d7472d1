#include "stretto/config/run.h"

#include <algorithm>

#include "stretto/base/text.h"
#include "stretto/graphs/graph_file.h"
#include "stretto/models/family.h"

namespace stretto {

ModelConfig model_config_of(const RunConfig& c) {
  ModelConfig model = c.model.config;
  model.documents = c.data.documents;
  if (const auto& lora = c.finetune.lora)
    model.lora = Lora{.rank = lora->rank, .alpha = lora->alpha, .dropout = lora->dropout, .params = c.finetune.adapted};
  return model;
}

Model model_of(const RunConfig& c) {
  if (!c.model.graph.empty()) return model_of(read_graph(c.model.graph), c.train.batch);
  return make_model(model_config_of(c), c.train.batch);
}

std::string ModelSection::str() const { return graph.empty() ? config.str() : "graph " + graph; }

Optimizer optimizer_of(const RunConfig& c) {
  const OptimizerSection& s = c.optimizer;
  const LrShape shape{.peak = s.lr, .warmup = s.warmup, .steps = c.train.steps, .floor = s.floor, .stable = s.stable};
  // sgd has no betas.
  const double beta1 = s.betas.empty() ? 0 : s.betas[0], beta2 = s.betas.size() < 2 ? 0 : s.betas[1];
  const AdamW by_numbers{.lr = s.lr, .beta1 = beta1, .beta2 = beta2, .eps = s.eps, .decay = s.decay};
  Optimizer o = s.name == "sgd"    ? sgd({.lr = s.lr, .momentum = s.momentum, .decay = s.decay, .nesterov = s.nesterov})
                : s.name == "lion" ? lion({.lr = s.lr, .beta1 = s.betas[0], .beta2 = s.betas[1], .decay = s.decay})
                : s.name == "muon" ? muon({.lr = s.lr,
                                           .momentum = s.momentum,
                                           .decay = s.decay,
                                           .nesterov = s.nesterov,
                                           .scale = s.scale,
                                           .steps = s.newton_schulz,
                                           .others = by_numbers,
                                           .others_lr = s.others_lr,
                                           .numbers = s.numbers})
                                   : adamw(by_numbers);
  o.state_dtype = s.state;
  if (c.train.ema > 0) o = with_ema(std::move(o), c.train.ema);
  return with_lr(std::move(o), lr_named(s.schedule, shape));
}

Training training_of(const RunConfig& c) {
  return {.microbatches = c.train.microbatches,
          .segments = c.train.segments,
          .seed = static_cast<u64>(c.train.seed),
          .dtype = c.train.dtype,
          .in_f32 = c.train.precision.in_f32,
          .frozen = c.finetune.lora ? std::vector<std::string>{"*", "!*.lora_a", "!*.lora_b"} : c.finetune.freeze,
          .frozen_dtype = c.model.frozen_dtype,
          .clip = c.train.clip,
          .clip_late = c.train.clip_late,
          .skip_nonfinite = c.train.nonfinite != Nonfinite::carry_on,
          .exact = c.train.exact,
          .leaf = c.train.leaf};
}

Compiled compile_run(const RunConfig& c, Purpose purpose) {
  if (!c.searched.empty()) {
    const std::string& key = c.searched.front();
    const auto at = c.origins.find(key);
    throw Error(at == c.origins.end() ? "run" : at->second, "key '{}' is \"auto\", and nothing has chosen its value",
                key)
        .hint("stretto plan RUN.toml --cluster CLUSTER.toml -o BEST.toml writes a run in which it is chosen");
  }
  try {
    Parallel parallel = parallel_of(c.parallel, c.train.dtype.products);
    parallel.purpose = purpose;
    return compile(model_of(c), optimizer_of(c), training_of(c), parallel);
  } catch (const Error& e) {
    std::vector<Fault> faults = e.faults();
    for (Fault& f : faults) {
      if (f.subjects.empty()) continue;
      const auto given = std::find_if(f.subjects.begin(), f.subjects.end(),
                                      [&](const std::string& key) { return c.origins.contains(key); });
      const std::string& key = given == f.subjects.end() ? f.subjects.back() : *given;
      f.where = given == f.subjects.end() ? key.substr(0, key.find('.')) : c.origins.at(key);
      f.what = fmt::format("key '{}': {}", key, f.what);
    }
    throw Error(std::move(faults)).as(e.kind());
  }
}

CorpusOptions corpus_of(const RunConfig& c) {
  return {.path = c.data.path,
          .mixture = c.data.mixture,
          .format = c.data.format,
          .tokenizer = c.data.tokenizer,
          .field = c.data.field,
          .chat_template = c.data.chat_template,
          .date = c.data.date,
          .vocab = c.model.config.vocab,
          .documents = c.data.documents,
          .validation = c.data.validation,
          .validation_path = c.data.validation_path,
          .beside = c.beside};
}

}  // namespace stretto
