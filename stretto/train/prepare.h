// Everything that is made from a RunConfig before the first step, and what a run says about itself.
//
//   Prepared p = prepare(run);
//   for (const std::string& line : about(run, p)) fmt::print("{}\n", line);
#pragma once
#include <span>
#include <string>
#include <vector>

#include "stretto/config/run.h"
#include "stretto/data/sequences.h"
#include "stretto/simulate/predict.h"
#include "stretto/train/trainer.h"

namespace stretto {

struct Prepared {
  Corpus corpus;
  RowsOptions rows;
  Compiled compiled;
  Prediction prediction;  // of one step, by the cost model
  double flops = 0;       // of a step: what the model asks for
  double peak = 0;        // flops per second of all the cores, or emulated devices, that work on it
  double seconds = 0;     // predicted, of a step, at that peak

  double tokens_per_step() const { return rows.batch * rows.length; }
};

Prepared prepare(const RunConfig&);

// Model, data, step, update, mesh, memory: one line each.
std::vector<std::string> about(const RunConfig&, const Prepared&);

std::vector<double> bytes_per_actor(const Program&);  // planned

// All arenas are touched before the first step: what a machine does not have would end the process, or another one.
// Every arena is whole pages of 2 MiB, and every rank gets a buffer for matrix products (kernels/cpu/products.h): both
// count here and not in bytes_per_actor().
// Of ranks that are processes those on `node` count (`nodes` has every rank's), else all of them.
double planned_bytes(const Program&, std::span<const int> nodes = {}, int node = 0);
std::string beside_plan(const Program&);  // "1.38 GiB in all, with ..."
double machine_bytes();                   // memory and swap of this one
inline constexpr std::string_view to_fit =
    "a smaller model or train.batch, more train.microbatches, parallel.recompute, or ranks on more machines";
void check_fits(double planned, double there, std::string_view hint = to_fit);  // throws
void check_fits_here(const Program&, const Peers*);  // what this machine's ranks need; peers: ranks are processes

PredictOptions predict_options(const RunConfig&);

Batch batch_of(const RowsOptions&, const Rows&);
void load_weights(const RunConfig&, Trainer&);  // those of model.from and finetune.adapter, if they are given

}  // namespace stretto
