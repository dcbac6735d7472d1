#include "stretto/run/inner/saving.h"

#include "stretto/run/current.h"
#include "stretto/saved/model_directory.h"
#include "stretto/saved/resume.h"
#include "stretto/train/snapshot.h"

namespace stretto {
Saving::Saving(const RunConfig& config, const std::filesystem::path& run_directory, Console& console, Peers* peers)
    : Saving(config, run_directory / "checkpoints", config.checkpoint.keep, console, peers) {}

Saving::Saving(const RunConfig& config, const std::filesystem::path& folder, int keep, Console& console, Peers* peers)
    : config_(config),
      console_(console),
      writer_(folder, keep),
      extras_(beside_tensors(config).extras),
      peers_(peers),
      writes_(!peers || peers->first()) {
  if (!peers || keep == 0) return;
  if (all_see(*peers, folder.parent_path()))
    together_.emplace(*peers, folder, keep);
  else
    console.say("note: not all ranks see the run directory, so the first one collects and writes checkpoints");
}

void Saving::export_model(const Trainer& trainer) {
  const CheckpointSection& c = config_.checkpoint;
  if (c.export_to.empty() && c.export_adapter.empty()) return;
  const WaitScope scope(peers_, WaitFor::saving);
  StoredModel m = current_model(trainer, config_, writes_);
  m.extras = extras_;
  if (!writes_) return;
  if (!c.export_to.empty()) {
    export_hf(c.export_to, m, {.stored = c.export_dtype});
    console_.say("exported " + c.export_to);
  }
  if (c.export_adapter.empty()) return;
  export_peft(c.export_adapter, m, config_.model.from, c.export_dtype.value_or(FileType::F32));
  console_.say("exported " + c.export_adapter);
}

void Saving::report(const std::optional<Saved>& s, bool must) {
  if (!s) return;
  if (s->error.empty()) return console_.say("saved    " + s->path.string());
  const std::string what = fmt::format("the checkpoint of step {} could not be written: {}", s->step, s->error);
  if (must) throw Error("checkpoint", "{}", what).as(Error::Kind::run);
  console_.say(what + "; training goes on, and the newest checkpoint before it is as it was");
  saved_.reset();
}

void Saving::save(const Trainer& trainer) {
  const WaitScope scope(peers_, WaitFor::saving);
  settle();
  saved_ = trainer.steps_done();
  if (!together_ && !writes_) return help_snapshot(trainer);
  Snapshot s = together_ ? share_of(trainer, peers_->rank(), checkpoint_config(config_), together_->spare())
                         : snapshot_of(trainer, checkpoint_config(config_), writer_.spare());
  s.extras = extras_;
  if (together_)
    together_->save(std::move(s));
  else
    writer_.save(std::move(s));
}

void Saving::settle() {
  const WaitScope scope(peers_, WaitFor::saving);
  report(wait(), false);
}

void Saving::after_step(const Trainer& trainer) {
  report(together_ ? together_->poll() : writer_.poll(), false);
  if (saves_after(trainer.steps_done())) save(trainer);
}

bool Saving::saves_after(i64 step) const {
  const CheckpointSection& c = config_.checkpoint;
  return c.keep > 0 && c.every > 0 && step % c.every == 0;
}

void Saving::save_last(const Trainer& trainer) {
  const WaitScope scope(peers_, WaitFor::saving);
  settle();
  u64 missing[] = {config_.checkpoint.keep > 0 && saved_ != trainer.steps_done()};
  if (peers_) peers_->merge(missing);  // only who writes knows
  if (missing[0]) save(trainer);
  report(wait(), true);
}

}  // namespace stretto
