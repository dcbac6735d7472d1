#include "stretto/runtime/ahead.h"

namespace stretto {

Ahead::Ahead(const Program& p, Milestones& m) : program_(p), next_(next_step(p)), milestones_(m), ranks_(p.ranks()) {}

double Ahead::come_to(int rank, std::uint32_t round, InstructionId i, DeviceLane lane) {
  const ActorId actor = program_.actor_of_rank(rank);
  Rank& me = ranks_[rank];
  if (i == InstructionId(0)) me.told = me.waits = 0;
  if (const auto& told = next_.told[actor]; me.told < told.size() && told[me.told] == i) {
    ++me.told;
    milestones_.tell(rank, number(actor, round, i));
  }
  double waited = 0;
  for (const auto& waits = next_.waits[actor]; me.waits < waits.size() && waits[me.waits].at == i; ++me.waits) {
    const NextStepWait& w = waits[me.waits];
    if (round == 1) continue;  // there is no step before
    const int other = program_.rank_of(w.actor, rank % program_.ranks_per_actor());
    waited += wait(rank, lane, other, number(w.actor, round - 1, w.until));
  }
  return waited;
}

// Whatever is written later, in any lane, relies on the wait: lanes that are not the calling thread begin their work
// after the compute lane.
double Ahead::wait(int rank, DeviceLane lane, int other, std::uint32_t number) {
  const double waited = milestones_.wait(rank, DeviceLane::compute, other, number);
  return lane == DeviceLane::compute ? waited : waited + milestones_.wait(rank, lane, other, number);
}

}  // namespace stretto
