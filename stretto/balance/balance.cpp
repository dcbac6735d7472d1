#include "stretto/balance/balance.h"

#include <algorithm>

#include "stretto/balance/inner/loads.h"

namespace stretto {

namespace {

bool one_stage_each(const Loads& l) {
  return std::all_of(l.stages_of.begin(), l.stages_of.end(), [](const auto& held) { return held.size() <= 1; });
}

// Every actor holds stage s and the s-th last, or the middle one.
bool folded(const Loads& l) {
  for (const std::vector<int>& held : l.stages_of) {
    if (held.empty() || held.size() > 2) return false;
    if (held[0] + held.back() != l.stages - 1) return false;
  }
  for (int pipe = 1; pipe < l.pipes(); ++pipe)  // both pipes see the same messages
    for (int s = 1; s < l.stages; ++s)
      if ((l.actor(s, pipe) == l.actor(s - 1, pipe)) != (l.actor(s) == l.actor(s - 1))) return false;
  return true;
}

}  // namespace

Balance balance(const BalanceProblem& p) {
  const Loads l(p);
  if (l.stages > l.pieces)
    throw Error("stages", "{} stages are asked for and the model has {} pieces between its boundaries", l.stages,
                l.pieces)
        .hint("use at most {} stages, more layers, or more boundaries", l.pieces)
        .about({"parallel.chunks", "parallel.schedule", "parallel.pipe"});
  Balance result{.bound = l.bound()};
  Cuts cuts = smallest_stage(l);
  if (one_stage_each(l)) {
    result.exact = true;
  } else {
    Cuts other = even_cuts(l);
    improve(l, cuts);
    improve(l, other);
    if (l.largest(other) < l.largest(cuts)) cuts = other;
    if (l.largest(cuts) > l.bound() * (1 + 1e-12)) {
      Found better = (folded(l) ? search_folded : search_any)(l, l.largest(cuts));
      result.exact = better.finished;
      if (!better.cuts.empty()) cuts = std::move(better.cuts);
    } else {
      result.exact = true;
    }
  }
  improve(l, cuts);
  result.largest = l.largest(cuts);
  if (result.exact) result.bound = result.largest;
  result.stage_of = stage_of(cuts);
  return result;
}

std::vector<int> cut(const std::vector<int>& pieces_per_stage, int pieces) {
  std::vector<int> stage_of;
  for (std::size_t s = 0; s < pieces_per_stage.size(); ++s) {
    if (pieces_per_stage[s] < 1)
      throw Error("stages", "stage {} takes {} pieces", s, pieces_per_stage[s])
          .hint("every stage takes at least one")
          .about({"parallel.stages"});
    stage_of.insert(stage_of.end(), pieces_per_stage[s], s);
  }
  if (std::ssize(stage_of) != pieces)
    throw Error("stages", "the stages take {} pieces and the model has {}", stage_of.size(), pieces)
        .hint("make the numbers add up to {}", pieces)
        .about({"parallel.stages"});
  return stage_of;
}

}  // namespace stretto
