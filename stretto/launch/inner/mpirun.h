// Which mpirun starts the ranks, and how.
//
//   const std::string mpirun = find_mpirun("");
//   const pid_t pid = start_mpirun(options, places.name(), scratch.path());
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <string>

#include "stretto/launch/launch.h"

namespace stretto {

// The wanted one; "": that of the MPI that Stretto was built with, else the one in PATH. An Error if there is none.
std::string find_mpirun(const std::string& wanted);

// mpirun, or what holds the only rank's place, in a process group of its own: a Ctrl-C of the terminal is for the
// launch alone.
pid_t start_mpirun(const LaunchOptions&, const std::string& launch, const std::string& scratch);

std::filesystem::path mpirun_log(const std::filesystem::path& logs);  // what mpirun itself says

}  // namespace stretto
