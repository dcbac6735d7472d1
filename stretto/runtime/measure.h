// The last recorded step as a Timeline: what the pictures show.
//
//   engine.record(true);
//   engine.run(step);
//   Timeline t = measured_timeline(engine);
#pragma once
#include <map>
#include <tuple>
#include <vector>

#include "stretto/cost/measured_times.h"
#include "stretto/runtime/engine.h"
#include "stretto/schedule/timeline.h"

namespace stretto {

// Of all ranks, those of other processes included. Times are seconds since the first task began. An action that had to
// wait between its tasks is several spans. A message is in flight from its send until it is taken, in the sender's
// lane.
Timeline measured_timeline(const Engine&);

// What each phase of each piece took in the last recorded steps, of all ranks; waiting for others left out.
//
//   PieceClock clock;
//   clock.add(engine);                            // after every step that was recorded
//   std::vector<MeasuredPiece> pieces = clock.pieces();
class PieceClock {
 public:
  void add(const Engine&);
  std::vector<MeasuredPiece> pieces() const;  // the median of all microbatches, steps and ranks of an actor

 private:
  std::map<std::tuple<int, int, Part>, std::vector<double>> seconds_;  // of a piece on an actor
};

}  // namespace stretto
