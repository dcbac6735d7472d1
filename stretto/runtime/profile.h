// Where the time of a rank's kernels went (RunOptions::profile).
//
//   for (const KernelTime& t : worker.profile()) fmt::print("{} {} {:.3f} s\n", t.op, t.shape, t.seconds);
#pragma once
#include <string>
#include <vector>

#include "stretto/runtime/prepared.h"

namespace stretto {

struct KernelTime {  // time spent in one kernel call of one task, over all its runs
  std::string op, kernel;
  Part part = Part::F;
  std::string shape;
  double seconds = 0;
  i64 runs = 0;
};

// A body that tasks share is listed under the first of them.
std::vector<KernelTime> kernel_times(const Step&, const PreparedProgram&, const Device&);

}  // namespace stretto
