// Random schedules for property tests: valid ones, and ones spoiled in a single place.
//
//   Schedule s = random_schedule({.actors = 4, .microbatches = 6, .seed = 1});
//   std::string what = spoil(s, rng);
#pragma once
#include <random>
#include <string>

#include "stretto/schedule/schedule.h"

namespace stretto {

struct RandomSchedule {
  enum class Placement { looped, v_shaped, any, bidirectional };
  int actors = 1, microbatches = 1, chunks = 1, segments = 1;
  Placement placement = Placement::looped;
  double ordered = 1;    // how often the lowest microbatch goes first
  double forward = 0.5;  // how often a forward goes before a backward
  double halves = 0;     // how many backwards are split into I and W
  double recompute = 0;  // how many have an R
  double groups = 0;     // how many neighbours are overlapped: the result need not be valid
  unsigned seed = 0;
};

// Actions are drawn one by one among those whose inputs are there, so that without groups the result is valid.
Schedule random_schedule(const RandomSchedule&);

// Swaps two actions, deletes, duplicates or moves one to another row, or changes a microbatch. Says which.
std::string spoil(Schedule&, std::mt19937&);

}  // namespace stretto
