// What the searches of balance() share: the load of every actor for given cuts.
//
//   Loads loads(problem);
//   double worst = loads.largest(cuts);           // cuts[s] is the first piece of stage s; cuts[stages] the end
#pragma once
#include <vector>

#include "stretto/balance/balance.h"
#include "stretto/base/error.h"
#include "stretto/base/id.h"

namespace stretto {

using Cuts = std::vector<int>;

class Loads {
 public:
  explicit Loads(const BalanceProblem&);

  int pieces = 0, stages = 0, actors = 0;
  IdVector<ActorId, std::vector<int>> stages_of;  // a stage held in two pipes stands there twice

  // Stage `s` made of pieces [begin, end), as its actor in `pipe` sees it.
  double segment(int s, int begin, int end, int pipe = 0) const {
    const std::vector<double>& before = before_[kind_[s]];
    double cost = before[end] - before[begin];
    const std::vector<char>& leaves = leaves_[pipe];
    if (leaves[s]) cost += message_[begin];
    if (leaves[s + 1]) cost += message_[end];
    return cost;
  }
  // Work alone, for the cheapest kind of stage: a lower bound for these pieces in any stage.
  double least(int begin, int end) const { return least_[end] - least_[begin]; }

  IdVector<ActorId, double> of(const Cuts&) const;
  double largest(const Cuts&) const;
  double bound() const { return bound_; }
  int pipes() const { return p_.actor_of.size(); }
  ActorId actor(int stage, int pipe = 0) const { return p_.actor_of[PipeId(pipe)][StageId(stage)]; }

 private:
  void find_bound();

  const BalanceProblem& p_;
  std::vector<int> kind_;
  std::vector<std::vector<double>> before_;  // per kind: sums of the first pieces
  std::vector<double> least_, message_;      // message_[i]: of a cut before piece i; 0 at both ends
  std::vector<std::vector<char>> leaves_;    // per pipe: is the edge before stage s between two actors?
  double bound_ = 0;
};

// Equally many pieces in every stage, as far as that goes.
Cuts even_cuts(const Loads&);
// Per piece, its stage; and back.
std::vector<int> stage_of(const Cuts&);
Cuts cuts_of(const std::vector<int>& stage_of);

// Shifts cuts, alone and in rows, as long as the largest load shrinks, or stays and the others come closer together.
void improve(const Loads&, Cuts&);
// Neighbouring pieces such that the most expensive stage is as cheap as possible; exact with one stage per actor.
Cuts smallest_stage(const Loads&);
struct Found {
  Cuts cuts = {};         // empty: there are none below the limit, or it gave up
  bool finished = false;  // false: it gave up, and there may be better ones
};
// The best cuts below `limit` for a placement that folds.
Found search_folded(const Loads&, double limit);
// The same for any placement.
Found search_any(const Loads&, double limit);

}  // namespace stretto
