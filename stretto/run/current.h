// A run's model as it is now: for files, and for whoever asks it something.
//
//   export_hf("export", current_model(trainer, config));
//   save(trainer, "mine", 3, beside_tensors(config));
#pragma once
#include "stretto/config/run.h"
#include "stretto/saved/model_directory.h"
#include "stretto/train/snapshot.h"

namespace stretto {

// The model as it is now, adapters merged; with train.ema its averages. All processes make this call, and those that do
// not want it get one without weights.
StoredModel current_model(const Trainer&, const RunConfig&, bool wanted = true);

// What checkpoints of the run have beside their tensors: its keys, the tokenizer and the like.
BesideTensors beside_tensors(const RunConfig&);

// Averages begin as the parameters do.
void start_averages(Trainer&);

}  // namespace stretto
