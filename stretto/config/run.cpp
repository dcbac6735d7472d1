#include "stretto/config/run.h"

#include "stretto/models/family.h"

namespace stretto {

Model model_of(const RunConfig& c) {
  ModelConfig model = c.model.config;
  model.documents = c.data.documents;
  return make_model(model, c.train.batch);
}

Optimizer optimizer_of(const RunConfig& c) {
  const OptimizerSection& s = c.optimizer;
  const LrShape shape{.peak = s.lr, .warmup = s.warmup, .steps = c.train.steps, .floor = s.floor, .stable = s.stable};
  Optimizer o = s.name == "sgd" ? sgd({.lr = s.lr, .momentum = s.momentum, .decay = s.decay, .nesterov = s.nesterov})
                : s.name == "lion"
                    ? lion({.lr = s.lr, .beta1 = s.betas[0], .beta2 = s.betas[1], .decay = s.decay})
                    : adamw({.lr = s.lr, .beta1 = s.betas[0], .beta2 = s.betas[1], .eps = s.eps, .decay = s.decay});
  return with_lr(std::move(o), lr_named(s.schedule, shape));
}

Training training_of(const RunConfig& c) {
  return {.microbatches = c.train.microbatches,
          .seed = u64(c.train.seed),
          .dtype = c.train.dtype,
          .clip = c.train.clip,
          .skip_nonfinite = c.train.nonfinite != Nonfinite::carry_on,
          .exact = c.train.exact,
          .leaf = c.train.leaf,
          .poll = c.train.poll};
}

namespace {

// The key of [parallel] that a fault of compile() is about; "" for faults of another kind.
std::string_view key_of(const Fault& f, const RunConfig& c) {
  const Origins& given = c.origins;
  if (f.where == "schedule") return "schedule";
  if (f.where == "recompute") return "recompute";
  for (const LayoutEntry& e : c.parallel.layout)
    if (f.where.starts_with("layout") && f.what.find(fmt::format("'{}'", e.dim)) != f.what.npos) return "layout";
  constexpr std::string_view names[] = {"layout",   "data",     "tensor",  "expert", "context", "depth",
                                        "sequence", "exchange", "reshard", "zero",   "mesh",    "pipe"};
  const auto is_given = [&](std::string_view key) { return given.contains(fmt::format("parallel.{}", key)); };
  if (f.where == "parallel" || f.where == "mesh" || f.where == "storage" || f.where.starts_with("layout")) {
    for (const std::string_view key : names)  // what the fault speaks of comes first
      if (is_given(key) &&
          (f.what.starts_with(fmt::format("{} ", key)) || f.what.find(fmt::format("'{}'", key)) != f.what.npos ||
           f.what.find(fmt::format("({})", key)) != f.what.npos))
        return key;
    for (const std::string_view key : names)
      if (is_given(key)) return key;
    return "pipe";
  }
  if (f.where != "stages") return "";
  for (const std::string_view key : {"stages", "chunks", "schedule"})
    if (given.contains(fmt::format("parallel.{}", key))) return key;
  return "pipe";
}

}  // namespace

Compiled compile_run(const RunConfig& c) {
  try {
    return compile(model_of(c), optimizer_of(c), training_of(c), parallel_of(c.parallel));
  } catch (const Error& e) {
    std::vector<Fault> faults = e.faults();
    for (Fault& f : faults) {
      const std::string_view key = key_of(f, c);
      if (key.empty()) throw;
      const auto origin = c.origins.find(fmt::format("parallel.{}", key));
      f.where = origin == c.origins.end() ? "parallel" : origin->second;
      f.what = fmt::format("key 'parallel.{}': {}", key, f.what);
    }
    throw Error(std::move(faults));
  }
}

CorpusOptions corpus_of(const RunConfig& c) {
  return {.path = c.data.path,
          .mixture = c.data.mixture,
          .format = c.data.format,
          .tokenizer = c.data.tokenizer,
          .vocab = c.model.config.vocab,
          .documents = c.data.documents,
          .validation = c.data.validation,
          .validation_path = c.data.validation_path};
}

}  // namespace stretto
