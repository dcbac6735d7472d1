// A whole run: data, model and optimizer as a RunConfig says, to the end or until Ctrl-C.
//
//   RunSummary s = train(read_run("run.toml", {"--train.steps=100"}));
#pragma once
#include <cstdio>
#include <optional>

#include "stretto/comm/peers.h"
#include "stretto/config/run.h"
#include "stretto/run/console.h"
#include "stretto/run/outcome.h"

namespace stretto {

// Prints to `out`. Nothing is written before everything has been checked. A loss that is not finite is an Error of kind
// run, unless train.nonfinite says otherwise. `resume`: go on from the newest checkpoint of log.dir (""), of another
// run directory, or from one checkpoint. `peers`: the other processes, one rank each; the first of them prints and
// writes.
RunSummary train(const RunConfig&, std::FILE* out = stdout, Verbosity = Verbosity::normal,
                 const std::optional<std::string>& resume = {}, std::shared_ptr<Peers> peers = nullptr);

// What can be checked without training: data, model, program, memory. Returns the lines that a run starts with.
std::string check_run(const RunConfig&);

}  // namespace stretto
