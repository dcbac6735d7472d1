// What single kernels take on a device: products of many shapes, attention forward and backward, passes over
// elements, copies, and a kernel with next to nothing to do. `stretto bench device` makes a device file of them.
//
//   for (const BenchedKernel& k : measure_kernels(*cpu_device())) fmt::print("{} {}\n", k.name, k.seconds);
#pragma once
#include <string>
#include <vector>

#include "stretto/ir/op.h"
#include "stretto/kernels/device.h"

namespace stretto {

struct BenchedKernel {
  std::string name;  // "product 512 x 512 x 128"
  Cost cost;
  double seconds = 0;  // the best of a few runs
};

// `scale`: all sides of products and attentions times this; tests use less than 1.
std::vector<BenchedKernel> measure_kernels(Device&, double scale = 1, DType = f32);

}  // namespace stretto
