// What choose_cuts() has to know of a step's pieces.
//
//   std::vector<PieceTimes> t = piece_times(step, Machine{});
#pragma once
#include <vector>

#include "stretto/balance/choose.h"
#include "stretto/step/step.h"

namespace stretto {

// Tasks of a microbatch, after fusion. `update` is left at 0.
std::vector<PieceTimes> piece_times(const Step&, const Machine&);

// The same pieces with measured seconds: forward and backward keep their shares.
std::vector<PieceTimes> scaled_to(std::vector<PieceTimes>, const std::vector<double>& seconds);

}  // namespace stretto
