// Where a run is continued from.
//
//   std::optional<Resumed> from = find_checkpoint(config, "");    // the newest in config.log.dir that is whole
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "stretto/checkpoint/checkpoint.h"
#include "stretto/config/run.h"

namespace stretto {

struct Resumed {
  std::optional<Checkpoint> checkpoint;  // none: the run ended before its first one, and begins again
  bool same_directory = true;            // the run goes on where it was, else in a new directory
  std::vector<std::string> notes = {};   // damaged checkpoints that were passed over, changed settings
};

// `from`: "" for config.log.dir, a run directory, or one checkpoint. Sets config.log.dir when the run goes on in
// `from`. None when there is no run yet; an Error when none of its checkpoints is whole, or when the settings are of
// another run.
std::optional<Resumed> find_checkpoint(RunConfig& config, const std::string& from);
// The run directory that find_checkpoint() would go on in; "" when it would begin a new one.
std::filesystem::path directory_to_go_on_in(const RunConfig& config, const std::string& from);

// What to do after a run has broken off or was stopped: which checkpoint there is, which command goes on from it.
struct BrokenOff {
  std::string directory;  // of the run
  int ranks = 1;          // processes
  std::string launcher = "stretto launch";
};
std::string advice_after(const BrokenOff&);

// What a checkpoint says about its run: as resolved_toml(), without the places that may be gone when it is read.
std::string checkpoint_config(const RunConfig&);
ModelConfig model_config_of(const Checkpoint&);  // with its adapters; the rest may name files that are not there

}  // namespace stretto
