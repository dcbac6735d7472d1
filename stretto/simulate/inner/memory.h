// How much a schedule's rows keep alive: F adds a stage's activations, W or B frees them; under recompute F keeps only
// its inputs and R adds the rest.
//
//   Memory memory(schedule, tape, costs, 0, Memory::Unit::activations);
//   memory.peaks();
#pragma once
#include <utility>
#include <vector>

#include "stretto/simulate/schedule_tape.h"

namespace stretto {

class Memory {
 public:
  enum class Unit { activations, bytes };  // activations: those of one full stage (all chunks) and one microbatch

  Memory(const Schedule&, const ScheduleTape&, const StageCosts&, double freed_by_i, Unit);

  std::vector<double> peaks() const;                                                // per actor; times do not matter
  std::vector<std::vector<std::pair<double, double>>> curves(const Player&) const;  // per actor (time, live)

 private:
  struct Change {
    double adds = 0, frees = 0;  // when the node starts; when it ends
  };
  Change change(std::uint32_t node) const;
  // Members of an overlap group are merged where there are collectives: nothing is freed before the last of them ends.
  bool ends_group(std::uint32_t node, std::size_t actor) const;

  const ScheduleTape& t_;
  double freed_by_i_;
  IdVector<StageId, double> whole_, kept_;  // a segment's activations; the part of them that F keeps
  IdVector<StageId, char> recomputes_;      // R is implied
};

}  // namespace stretto
