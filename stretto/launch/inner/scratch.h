// A directory in shared memory for the files that MPI makes there. MPI removes them at the end of a run that ends well.
// The launch removes the directory however the run ends; when the launch itself is killed, a small process does it.
//
//   const Scratch scratch("stretto-4f…");
//   setenv("UCX_POSIX_DIR", scratch.path().c_str(), 0);
#pragma once
#include <sys/types.h>

#include <string>

#include "stretto/launch/inner/system.h"

namespace stretto {

class Scratch {
 public:
  explicit Scratch(const std::string& name);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  const std::string& path() const { return path_; }  // "": it cannot be made here
  // "/dev/shm is full but for …; hint: …"; "": it is not.
  static std::string full();

 private:
  std::string path_;
  Pipe alive_;  // ends with the launch and its mpirun
  pid_t keeper_ = 0;
};

}  // namespace stretto
