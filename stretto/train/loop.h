// A whole run: data, model and optimizer as a RunConfig says, to the end or
// until Ctrl-C.
//
//   RunSummary s = train(read_run("run.toml", {"--train.steps=100"}));
#pragma once
#include <cstdio>
#include <filesystem>
#include <optional>

#include "stretto/comm/peers.h"
#include "stretto/config/run.h"
#include "stretto/train/console.h"

namespace stretto {

struct RunSummary {
  std::filesystem::path
      directory;         // config.toml, metrics.jsonl, TensorBoard events; report.html; timeline.* of a measured step
  i64 steps = 0;         // done, those before a resumption included
  i64 resumed = 0;       // done before it
  bool stopped = false;  // by a signal, before the last step
  i64 nonfinite = 0;     // steps whose loss or gradient norm was not, as far as they did not end the run
  double first_loss = 0, last_loss = 0;
  std::optional<double> validation_loss = {};  // the last one
  u64 parameters = 0;                          // hash
};

// Prints to `out`. Nothing is written before everything has been checked. A loss that is not finite is an Error of kind
// run, unless train.nonfinite says otherwise. `resume`: go on from the newest checkpoint of log.dir (""), of another
// run directory, or from one checkpoint. `peers`: the other processes, one rank each; the first of them prints and
// writes.
RunSummary train(const RunConfig&, std::FILE* out = stdout, Verbosity = Verbosity::normal,
                 const std::optional<std::string>& resume = {}, std::shared_ptr<Peers> peers = nullptr);

// What can be checked without training: data, model, program, memory. Returns
// the lines that a run starts with.
std::string check_run(const RunConfig&);

}  // namespace stretto
