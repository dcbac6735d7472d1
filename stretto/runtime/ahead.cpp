#include "stretto/runtime/ahead.h"

#include "stretto/base/clock.h"
#include "stretto/comm/stop_flag.h"

namespace stretto {

Ahead::Ahead(const Program& p) : program_(p), next_(next_step(p)), ranks_(p.ranks()) {}

double Ahead::come_to(int rank, std::uint32_t round, InstructionId i) {
  const ActorId actor = program_.actor_of_rank(rank);
  Rank& me = ranks_[rank];
  if (i == InstructionId(0)) me.told = me.waits = 0;
  if (const auto& told = next_.told[actor]; me.told < told.size() && told[me.told] == i) {
    ++me.told;
    me.reached.advance(number(actor, round, i));
  }
  double waited = 0;
  for (const auto& waits = next_.waits[actor]; me.waits < waits.size() && waits[me.waits].at == i; ++me.waits) {
    const NextStepWait& w = waits[me.waits];
    if (round == 1) continue;  // there is no step before
    const int other = program_.rank_of(w.actor, rank % program_.ranks_per_actor());
    waited += wait(other, number(w.actor, round - 1, w.until));
  }
  return waited;
}

double Ahead::wait(int rank, std::uint32_t number) {
  Milestone& m = ranks_[rank].reached;
  Milestone::Seen seen = m.look();
  if (seen.reached(number)) return 0;
  const double start = now();
  for (; !seen.reached(number); seen = m.look()) {
    if (seen.stopped()) throw StopFlag::error();
    m.sleep(seen);
  }
  return now() - start;
}

void Ahead::stop() noexcept {
  for (Rank& r : ranks_) r.reached.stop();
}

}  // namespace stretto
