// The checkpoints of a run: when they are written, and what is said about them.
//
//   Saving saving(config, directory, console);
//   saving.after_step(trainer, step);
//   saving.finish(trainer);
#pragma once
#include "stretto/checkpoint/writer.h"
#include "stretto/config/run.h"
#include "stretto/train/console.h"
#include "stretto/train/trainer.h"

namespace stretto {

class Saving {
 public:
  // `peers`: the processes of the run; they give what they hold to the first of them, which writes.
  Saving(const RunConfig&, const std::filesystem::path& run_directory, Console&, Peers* peers = nullptr);
  void after_step(const Trainer&);  // a failure is said, and the run goes on
  void finish(const Trainer&);      // saves the last step, unless it is saved, waits and exports; a failure is an Error
  void began_at(i64 step) { saved_ = step; }

 private:
  void save(const Trainer&);
  void export_model(const Trainer&);
  void report(const std::optional<Saved>&, bool must);

  const RunConfig& config_;
  Console& console_;
  CheckpointWriter writer_;
  std::vector<Snapshot::Extra> extras_;
  Peers* peers_;
  bool writes_;
  i64 saved_ = -1;  // the last step that is saved or being saved
};

}  // namespace stretto
