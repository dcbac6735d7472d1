#include "stretto/config/run.h"

#include "stretto/config/keys.h"
#include "stretto/models/family.h"

namespace stretto {
namespace {

Field field_of(i64 v) { return Field(v); }
Field field_of(int v) { return Field(v); }
Field field_of(double v) { return Field(v); }
Field field_of(bool v) { return Field(v); }
Field field_of(const std::string& v) { return Field(v); }
Field field_of(const std::optional<bool>& v) { return v ? Field(*v) : Field(); }
template <class T>
Field field_of(const std::vector<T>& v) {
  return Field(Field::Array(v.begin(), v.end()));
}

Field mixture_field(const std::vector<MixturePart>& mixture) {
  Field::Array parts;
  for (const MixturePart& p : mixture)
    parts.push_back(Field(Field::Table{{"path", field_of(p.path)}, {"weight", Field(p.weight)}}));
  return Field(std::move(parts));
}

// Writes the keys of a section into a table.
struct Writing {
  Field& to;
  template <class T, class... R>
  void operator()(std::string_view key, T& value, const R&...) {
    to.set(key, field_of(value));
  }
  template <class T>
  void operator()(std::string_view key, T& value, const Choices<T>& choices) {
    for (const auto& [name, choice] : choices)
      if (choice == value) to.set(key, Field(std::string(name)));
  }
};

}  // namespace

std::string resolved_toml(const RunConfig& config) {
  RunConfig c = config;  // keys_of wants what it can write to
  Field root{Field::Table{}};
  Field& model = root.set("model", Field(Field::Table{}));
  if (!c.model.from.empty()) model.set("from", Field(c.model.from));
  keys_of(c.model.config, Writing{model});
  Field& rope = model.set("rope_scaling", Field(Field::Table{}));
  keys_of(c.model.config.rope_scaling, Writing{rope});
  Field& data = root.set("data", Field(Field::Table{}));
  if (c.data.mixture.empty())
    data.set("path", field_of(c.data.path));
  else
    data.set("mixture", mixture_field(c.data.mixture));
  keys_of(c.data, Writing{data});
  data.set("validation", c.data.validation_path.empty() ? Field(c.data.validation) : field_of(c.data.validation_path));
  keys_of(c.train, Writing{root.set("train", Field(Field::Table{}))});
  keys_of(c.optimizer, Writing{root.set("optimizer", Field(Field::Table{}))});
  root.set("parallel", parallel_field(c.parallel));
  keys_of(c.checkpoint, Writing{root.set("checkpoint", Field(Field::Table{}))});
  Field& log = root.set("log", Field(Field::Table{}));
  keys_of(c.log, Writing{log});
  log.set("timeline", c.log.timeline < 0 ? Field("last") : Field(c.log.timeline));
  return write_toml(root);
}

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
          .skip_nonfinite = c.train.nonfinite != Nonfinite::carry_on};
}

namespace {

// The key of [parallel] that a fault of compile() is about; "" for faults of another kind.
std::string_view key_of(const Fault& f, const Origins& given) {
  if (f.where == "schedule") return "schedule";
  if (f.where == "recompute") return "recompute";
  if (f.where == "mesh") return "pipe";
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
      const std::string_view key = key_of(f, c.origins);
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
