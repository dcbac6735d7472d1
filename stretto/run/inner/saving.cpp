#include "stretto/run/inner/saving.h"

#include "stretto/formats/mapped_file.h"
#include "stretto/tokenize/tokenizer.h"
#include "stretto/saved/model_directory.h"
#include "stretto/run/inner/progress.h"
#include "stretto/saved/resume.h"
#include "stretto/train/snapshot.h"

namespace stretto {
namespace {

using Extras = std::vector<Snapshot::Extra>;

void put(Extras& all, Snapshot::Extra e) {
  std::erase_if(all, [&](const Snapshot::Extra& old) { return old.name == e.name; });
  all.push_back(std::move(e));
}

// Instead of those beside the weights. In a directory as libraries write it the other files belong to it too.
void take_tokenizer(Extras& all, const std::filesystem::path& file) {
  const std::string name = file.extension() == ".model" ? "tokenizer.model" : "tokenizer.json";
  const auto of_model = [](const Snapshot::Extra& e) { return e.name == "generation_config.json"; };
  const bool library = file.filename() == name;
  std::erase_if(all, [&](const Snapshot::Extra& e) {
    return library ? !of_model(e) : e.name == "tokenizer.json" || e.name == "tokenizer.model";
  });
  if (!library) return put(all, {name, std::string(MappedFile(file).text())});
  for (Snapshot::Extra& e : stretto::extras_of(file.parent_path()))
    if (!of_model(e)) put(all, std::move(e));
}

// What lies beside the weights a run started from, with the tokenizer of its data.
Extras extras_of(const RunConfig& c) {
  Extras all;
  if (!c.model.from.empty()) all = stretto::extras_of(std::filesystem::path(c.model.from));
  if (c.data.tokenizer != "bytes" && c.data.tokenizer != "none") take_tokenizer(all, tokenizer_file(c.data.tokenizer));
  if (!c.data.chat_template.empty())
    put(all, {"chat_template.jinja", std::string(MappedFile(c.data.chat_template).text())});
  return all;
}

}  // namespace

Saving::Saving(const RunConfig& config, const std::filesystem::path& run_directory, Console& console, Peers* peers)
    : Saving(config, run_directory / "checkpoints", config.checkpoint.keep, console, peers) {}

Saving::Saving(const RunConfig& config, const std::filesystem::path& folder, int keep, Console& console, Peers* peers)
    : config_(config),
      console_(console),
      writer_(folder, keep),
      extras_(extras_of(config)),
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

void Saving::settle() { report(wait(), false); }

void Saving::after_step(const Trainer& trainer) {
  report(together_ ? together_->poll() : writer_.poll(), false);
  if (saves_after(trainer.steps_done())) save(trainer);
}

bool Saving::saves_after(i64 step) const {
  const CheckpointSection& c = config_.checkpoint;
  return c.keep > 0 && c.every > 0 && step % c.every == 0;
}

void Saving::save_last(const Trainer& trainer) {
  settle();
  u64 missing[] = {config_.checkpoint.keep > 0 && saved_ != trainer.steps_done()};
  if (peers_) peers_->merge(missing);  // only who writes knows
  if (missing[0]) save(trainer);
  report(wait(), true);
}

}  // namespace stretto
