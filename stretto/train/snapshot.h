// Between a Trainer and a checkpoint: logical values, whatever the layout.
//
//   load(trainer, "mine");                     // the newest in it; on the first start there is none
//   while (trainer.steps_done() < 1000) { trainer.step(next(trainer.steps_done())); save(trainer, "mine"); }
#pragma once
#include "stretto/checkpoint/checkpoint.h"
#include "stretto/train/trainer.h"

namespace stretto {

// What a checkpoint has beside its tensors: keys of the run, without which other programs cannot tell the model, and
// files that belong to it.
struct BesideTensors {
  std::string config = {};
  std::vector<Snapshot::Extra> extras = {};
};
// Writes directory/step-<number>, which appears whole or not at all, and leaves the newest `keep` of them. When ranks
// are processes, all of them call it and the first one writes.
void save(const Trainer&, const std::filesystem::path& directory, int keep = 3, BesideTensors = {});
// Goes on from the newest of them that is whole, under any layout. False: there is none. Damaged ones after it are an
// Error only when none is whole.
bool load(Trainer&, const std::filesystem::path& directory);

// `memory`: an earlier one, which is filled again: no pages have to be found for the copy.
Snapshot snapshot_of(const Trainer&, std::string config, Snapshot memory = {});
// For a process that only gives what it holds to another, which makes one.
void help_snapshot(const Trainer&);

// What one rank, which is here, writes when every rank writes for itself: of what several hold, each its share.
Snapshot share_of(const Trainer&, int rank, std::string config, Snapshot memory = {});

// Parameters, optimizer state and step. What is missing, surplus or of another shape is all named in one Error.
void restore(Trainer&, const Checkpoint&);

}  // namespace stretto
