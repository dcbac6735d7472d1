// Between a Trainer and a checkpoint: logical values, whatever the layout.
//
//   write_checkpoint(path, snapshot_of(trainer, resolved_toml(config)));
//   restore(other, Checkpoint(path));          // under any layout
#pragma once
#include "stretto/checkpoint/checkpoint.h"
#include "stretto/train/trainer.h"

namespace stretto {

// `memory`: an earlier one, which is filled again: no pages have to be found for the copy.
Snapshot snapshot_of(const Trainer&, std::string config, Snapshot memory = {});
// For a process that only gives what it holds to another, which makes one.
void help_snapshot(const Trainer&);

// What one rank, which is here, writes when every rank writes for itself: of what several hold, each its share.
Snapshot share_of(const Trainer&, int rank, std::string config, Snapshot memory = {});

// Parameters, optimizer state and step. What is missing, surplus or of another shape is all named in one Error.
void restore(Trainer&, const Checkpoint&);

}  // namespace stretto
