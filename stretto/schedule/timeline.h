// Who did what from when to when. The simulator predicts one, the runtime measures one: the same type, so that
// every picture works for both.
//
//   Timeline t = simulate(schedule).timeline;
//   for (const Span& s : t.spans) fmt::print("actor {}: {} to {}\n", s.actor, s.start, s.end);
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
  int coordinate = 0;  // which of its actor's ranks
  Lane lane = Lane::compute;
  double start = 0, end = 0;
  std::optional<Action> action = {};   // absent for prologue, epilogue, update, ...
  std::string label = {};              // what to print when there is no action, or the message's name
  std::string waited = {};             // what the start waited for: "message 1F3 from actor 0", "" when it was free
  std::optional<double> halfway = {};  // of a B: when I is done, and its gradient on the way
  double waiting = 0;                  // of its time, what was spent on waiting for others: collectives in place
};

struct Timeline {
  int actors = 0, stages = 0;
  int ranks = 1;                                               // per actor; of a prediction one stands for all
  std::vector<Span> spans;                                     // in start order per rank
  std::vector<std::vector<std::pair<double, double>>> memory;  // per actor: (time, live amount), a step function
  std::string memory_unit = "activations";                     // or "bytes"
  std::string title = {};

  double makespan() const;         // first start to last end, over all ranks
  double span() const;             // the longest single rank's first start to last end
  double busy(int actor) const;    // time in compute spans, with an action or without, less waiting; its ranks' mean
  double bubble(int actor) const;  // 1 - busy / makespan
  double bubble() const;           // the same over all ranks
  std::vector<double> busy_ranks() const;  // of every rank: actor * ranks + coordinate
  bool has(const Span& s) const {
    return s.actor >= 0 && s.actor < actors && s.coordinate >= 0 && s.coordinate < ranks;
  }
  std::size_t row(const Span& s) const { return std::size_t(s.actor) * ranks + s.coordinate; }  // its rank
  double peak(int actor) const;                                                                 // of the memory curve
};

// Microbatches whose forward has begun and whose last backward is not done, over time, on the actor's first rank; a
// chunk counts as its part of an actor's stages.
std::vector<std::pair<double, double>> live_microbatches(const Timeline&, const Schedule&, int actor);

}  // namespace stretto
