// The plain way to find out whether a schedule runs: actors that do what their rows say with real queues between them,
// interleaved at random. Knows nothing of the validator or the proof and shares no code with them.
//
//   std::string why = run_blocking(schedule, {.capacity = 1}, rng);   // "" when two steps ran to their end
#pragma once
#include <random>
#include <string>

#include "stretto/schedule/schedule.h"

namespace stretto {

struct Blocking {
  enum class Matching { tagged, channel, pair };
  int capacity = 1;  // of one queue, beside the buffers of posted receives; 0: a send waits for its receive
  Matching matching = Matching::channel;
};

std::string run_blocking(const Schedule&, const Blocking&, std::mt19937&);

}  // namespace stretto
