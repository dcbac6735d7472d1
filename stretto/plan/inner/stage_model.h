// A configuration as stages: what each takes, holds and sends, summed up from facts of pieces.
//
//   const StageModel m(problem, keys, {&facts, &facts});     // of two stages
//   const PlayTimes times = m.times(false);                  // for the schedule's play
//   const MemoryParts fullest = m.memory(shape);
#pragma once
#include <vector>

#include "stretto/balance/choose.h"
#include "stretto/cost/factors.h"
#include "stretto/plan/inner/facts.h"
#include "stretto/plan/inner/shapes.h"
#include "stretto/simulate/held.h"

namespace stretto {

using FactsOfStages = std::vector<const StageFacts*>;  // one per stage: they differ where recompute does

class StageModel {
 public:
  // keys.stages has to be there: even_stages(piece_work(...), ...). All of them outlive it.
  StageModel(const PlanProblem&, const RunKeys&, FactsOfStages);

  const IdVector<StageId, PieceFacts>& facts() const { return all_; }
  // As programs are arranged, about, or with everything in place: they take what is shorter.
  PlayTimes times(bool in_place) const;
  bool arranged() const;

  double work() const;                              // seconds of a microbatch, all stages
  PieceFacts busiest(const StagePlacement&) const;  // of all stages of the actor that works the longest

  double scratch() const { return scratch_; }  // bytes of a rank, whatever it does
  // What the software of the cluster keeps of an actor whose row is played, and holds then.
  KeptByStack kept_by_stack(Shape&, ActorId) const;
  MemoryParts under_stack(MemoryParts, const KeptByStack&) const;
  // Of one actor whose row is played in order.
  MemoryParts memory(const Schedule&, ActorId) const;
  // The same of all microbatches of a shape; and of the fullest actor.
  MemoryParts played_memory(Shape&, ActorId) const;
  MemoryParts played_memory(Shape&) const;
  // The same from the numbers of microbatches that a shape keeps at its fullest, of the first, a middle and the last
  // actor.
  MemoryParts memory(const Shape&) const;
  double update(const Schedule&, ActorId) const;  // seconds after all gradients are there
  double tail(const Schedule&, ActorId) const;    // the same with sums that go on beside the last backward, roughly

 private:
  PieceFacts states_of(const Schedule&, ActorId) const;
  void find_kept();
  bool keeps_products() const;
  KeptByStack kept_by_stack(const Schedule&, ActorId) const;
  KeptByStack kept_at_once(bool with_loss) const;
  double gathered() const;
  void add_sums(PlayTimes&) const;
  void add_cut(PlayTimes&) const;

  const PlanProblem& p_;
  const RunKeys& k_;
  const FactsOfStages f_;
  const StackFactors stack_;
  double scratch_ = 0;
  IdVector<StageId, PieceFacts> all_;
  IdVector<StageId, PieceKept> kept_;  // empty: nothing that the program does not
};

// What the software of a cluster holds more or less than is planned.
void adjust(MemoryParts&, const Held&);
// How much more an actor keeps after an action than before it.
double kept_after(Phase, const PieceFacts&);
std::vector<ActorId> some_actors(const Schedule&);  // the first, a middle one, the last
// What each piece takes; gathers and scatters go on beside it.
std::vector<PieceTimes> piece_times(const PlanProblem&, const StageFacts&);
// The same, forward and backward together.
std::vector<double> piece_work(const PlanProblem&, const StageFacts&);

}  // namespace stretto
