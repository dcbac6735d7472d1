// The directory of one run: config.toml (resolved), metrics.jsonl.
//
//   RunConfig run = ...;
//   run.log.dir = make_run_directory(run.log).string();
#pragma once
#include <filesystem>

#include "stretto/config/run.h"

namespace stretto {

// A new directory: log.dir, or runs/<name>-<date and time>, with a number
// after it if that is taken. A directory that already holds a run is an Error:
// nothing is ever written over.
std::filesystem::path make_run_directory(const LogSection&);
// The same Error for a directory in which something is, beside a lock and what sweep() removes.
void check_unused(const std::filesystem::path&);
// Removes what a run that was killed had begun to write there. The directory's lock is held.
void sweep(const std::filesystem::path& run);

}  // namespace stretto
