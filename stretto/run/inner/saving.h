// The checkpoints of a run: when they are written, and what is said about them.
//
//   Saving saving(config, directory, console);
//   saving.after_step(trainer);
//   saving.save_last(trainer);
#pragma once
#include "stretto/checkpoint/writer.h"
#include "stretto/config/run.h"
#include "stretto/run/console.h"
#include "stretto/run/inner/process_writer.h"
#include "stretto/train/trainer.h"

namespace stretto {

class Saving {
 public:
  // `peers`: the processes of the run. Each writes what it holds; where they do not see the run's directory, they give
  // it to the first of them, which writes. All of them make the same calls.
  Saving(const RunConfig&, const std::filesystem::path& run_directory, Console&, Peers* peers = nullptr);
  bool saves_after(i64 step) const;
  // The same in another folder of the run directory, for those that are asked for one by one.
  Saving(const RunConfig&, const std::filesystem::path& folder, int keep, Console&, Peers* peers);
  void after_step(const Trainer&);  // a failure is said, and the run goes on
  void settle();                    // what is being written is there afterwards, or that it is not is said
  void save_last(const Trainer&);   // unless it is saved, and waits; a failure is an Error
  void export_model(const Trainer&);
  void save(const Trainer&);  // a failure is said later on
  void began_at(i64 step) { saved_ = step; }

 private:
  void report(const std::optional<Saved>&, bool must);
  std::optional<Saved> wait() { return together_ ? together_->wait() : writer_.wait(); }

  const RunConfig& config_;
  Console& console_;
  CheckpointWriter writer_;
  std::optional<ProcessWriter> together_;
  std::vector<Snapshot::Extra> extras_;
  Peers* peers_;
  bool writes_;
  std::optional<i64> saved_;  // the last step that is saved or being saved
};

}  // namespace stretto
