#include "stretto/train/saving.h"

#include "stretto/train/model_directory.h"
#include "stretto/train/resume.h"
#include "stretto/train/snapshot.h"

namespace stretto {

Saving::Saving(const RunConfig& config, const std::filesystem::path& run_directory, Console& console)
    : config_(config), console_(console), writer_(run_directory / "checkpoints", config.checkpoint.keep) {}

void Saving::export_model(const Trainer& trainer) {
  if (config_.checkpoint.export_to.empty()) return;
  StoredModel m{.config = config_.model.config};
  for (const CompiledParam& p : trainer.compiled().params) m.weights.emplace(p.name, trainer.parameter(p.name));
  if (!config_.model.from.empty()) m.extras = extras_of(config_.model.from);
  export_hf(config_.checkpoint.export_to, m);
  console_.say("exported " + config_.checkpoint.export_to);
}

void Saving::report(const std::optional<Saved>& s, bool must) {
  if (!s || s->error.empty()) return;
  const std::string what = fmt::format("the checkpoint of step {} could not be written: {}", s->step, s->error);
  if (must) throw Error("checkpoint", "{}", what).as(Error::Kind::run);
  console_.say(what + "; training goes on, earlier checkpoints are as they were");
  saved_ = -1;
}

void Saving::save(const Trainer& trainer) {
  report(writer_.wait(), false);
  Snapshot s = snapshot_of(trainer, checkpoint_config(config_));
  if (!config_.model.from.empty()) s.extras = extras_of(config_.model.from);
  saved_ = s.step;
  writer_.save(std::move(s));
}

void Saving::after_step(const Trainer& trainer) {
  report(writer_.poll(), false);
  const CheckpointSection& c = config_.checkpoint;
  if (c.keep > 0 && c.every > 0 && trainer.steps_done() % c.every == 0) save(trainer);
}

void Saving::finish(const Trainer& trainer) {
  report(writer_.wait(), false);
  if (config_.checkpoint.keep > 0 && saved_ != trainer.steps_done()) save(trainer);
  report(writer_.wait(), true);
  export_model(trainer);
}

}  // namespace stretto
