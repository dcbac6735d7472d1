// Who did what from when to when. The simulator predicts one, the runtime measures one: the same type, so that
// every picture works for both.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stretto/schedule/schedule.h"

namespace stretto {

enum class Lane : std::uint8_t { compute, message, collective, other };

struct Span {
  int actor = 0;
  Lane lane = Lane::compute;
  double start = 0, end = 0;
  std::optional<Action> action = {};   // absent for prologue, epilogue, update, ...
  std::string label = {};              // what to print when there is no action, or the message's name
  std::string waited = {};             // what the start waited for: "message 1F3 from actor 0", "" when it was free
  std::optional<double> halfway = {};  // of a measured B: when I was done, and its gradient on the way
};

struct Timeline {
  int actors = 0, stages = 0;
  std::vector<Span> spans;                                     // in start order per actor
  std::vector<std::vector<std::pair<double, double>>> memory;  // per actor: (time, live amount), a step function
  std::string memory_unit = "activations";                     // or "bytes"
  std::string title = {};

  double makespan() const;         // first start to last end, over all actors
  double span() const;             // the longest single actor's first start to last end
  double busy(int actor) const;    // time in compute spans, with an action or without
  double bubble(int actor) const;  // 1 - busy / makespan
  double bubble() const;           // the same over all actors
  double peak(int actor) const;    // of the memory curve
};

// Microbatches whose forward has begun and whose last backward is not done, over time; a chunk counts as its part of an
// actor's stages.
std::vector<std::pair<double, double>> live_microbatches(const Timeline&, const Schedule&, int actor);

}  // namespace stretto
