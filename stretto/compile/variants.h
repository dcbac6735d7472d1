// What the ways to store a run's parameters over the data axis hold and send, side by side.
//
//   for (const StorageVariant& v : storage_variants(compiled)) fmt::print("zero {}: {} sent\n", v.zero, v.sent());
#pragma once
#include <string>
#include <vector>

#include "stretto/compile/compile.h"

namespace stretto {

struct StorageVariant {
  int zero = 0;
  Reshard reshard = Reshard::microbatch;
  bool chosen = false;
  // Bytes of one rank, all actors' parameters together. `gathered`: parameters that are whole at a time, at most.
  double params = 0, gradients = 0, state = 0, gathered = 0;
  double reduced = 0, collected = 0;  // sent by a rank per step: for gradients; for parameters
  double sent() const { return reduced + collected; }
};

// Beside the other axes of its layout; none when nothing lies on the data axis. Rings: of n bytes over d ranks a gather
// or a reduce-scatter sends n (d - 1) / d, an all-reduce twice that.
std::vector<StorageVariant> storage_variants(const Compiled&);
std::string variants_str(const Compiled&);

}  // namespace stretto
