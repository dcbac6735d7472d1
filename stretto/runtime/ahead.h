// Ranks in different steps: a rank that goes on with the next step waits where next_step.h says that it must.
//
//   Ahead ahead(program, milestones);
//   double waited = ahead.come_to(rank, round, instruction, lane);     // before each instruction, and after the last
#pragma once
#include <vector>

#include "stretto/comm/milestones.h"
#include "stretto/program/next_step.h"

namespace stretto {

class Ahead {
 public:
  Ahead(const Program&, Milestones&);
  // Announces that the rank has done all before this instruction, which is in `lane`, and waits for other ranks before
  // it writes into their memory. Returns the seconds waited. Rounds count steps from 1. An Error when stopped.
  double come_to(int rank, std::uint32_t round, InstructionId, DeviceLane lane);

 private:
  struct alignas(64) Rank {
    std::size_t told = 0, waits = 0;  // the next of each; touched by its own thread only
  };
  // A number that rises over all steps.
  std::uint32_t number(ActorId a, std::uint32_t round, InstructionId i) const {
    return round * (std::uint32_t(program_.actors[a].code.size()) + 1) + i.value;
  }
  double wait(int rank, DeviceLane lane, int other, std::uint32_t number);

  const Program& program_;
  const NextStep next_;
  Milestones& milestones_;
  std::vector<Rank> ranks_;
};

}  // namespace stretto
