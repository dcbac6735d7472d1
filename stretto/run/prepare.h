// Everything that is made from a RunConfig before the first step, and what a run says about itself.
//
//   Prepared p = prepare(run);
//   for (const std::string& line : about(run, p)) fmt::print("{}\n", line);
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "stretto/config/run.h"
#include "stretto/data/sequences.h"
#include "stretto/simulate/predict.h"
#include "stretto/train/fits.h"
#include "stretto/train/trainer.h"

namespace stretto {

struct Prepared {
  Corpus corpus;  // of a model that is a graph there is none
  RowsOptions rows;
  Compiled compiled;
  Prediction prediction;  // of one step, by the cost model
  double flops = 0;       // of a step: what the model asks for
  double peak = 0;        // flops per second of all the cores, or emulated devices, that work on it
  double seconds = 0;     // predicted, of a step, at that peak

  double tokens_per_step() const { return rows.batch * rows.length; }
};

Prepared prepare(const RunConfig&, Peers* = nullptr);  // peers: ranks are processes, which all call it

// Model, data, step, update, mesh, memory: one line each.
std::vector<std::string> about(const RunConfig&, const Prepared&);

PredictOptions predict_options(const RunConfig&);

Batch batch_of(const RowsOptions&, const Rows&);
Batch batch_of(const RunConfig&, const Prepared&, i64 step);  // of the run's data; drawn for a model that is a graph
void load_weights(const RunConfig&, Trainer&);  // those of model.from or .graph and finetune.adapter, if they are given

}  // namespace stretto
