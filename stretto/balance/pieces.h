// What choose_cuts() has to know of a step's pieces.
//
//   std::vector<PieceTimes> t = piece_times(step, Machine{});
#pragma once
#include <vector>

#include "stretto/balance/choose.h"
#include "stretto/cost/measured_times.h"
#include "stretto/step/step.h"

namespace stretto {

// Tasks of a microbatch, after fusion; of all segments together. `update` is left at 0.
std::vector<PieceTimes> piece_times(const Step&, const Machine&);

// The same pieces with measured seconds, times `slower`. What is made again takes as much longer as F does.
std::vector<PieceTimes> as_measured(std::vector<PieceTimes>, const std::vector<MeasuredPiece>&, double slower);

// What every piece does in forward, as a number: equal ones take equally long.
std::vector<u64> kinds_of_pieces(const Step&);

}  // namespace stretto
