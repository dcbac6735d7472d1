#include "stretto/balance/inner/loads.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace stretto {

Loads::Loads(const BalanceProblem& p) : p_(p) {
  STRETTO_ASSERT(!p.seconds.empty() && !p.actor_of.empty());
  pieces = p.seconds[0].size();
  stages = p.actor_of[down_pipe].size();
  STRETTO_ASSERT(p.kind.empty() || std::ssize(p.kind) == stages);
  STRETTO_ASSERT(p.message.empty() || std::ssize(p.message) + 1 == pieces);
  for (const std::vector<double>& seconds : p.seconds) {
    STRETTO_ASSERT(std::ssize(seconds) == pieces);
    before_.emplace_back(pieces + 1, 0.0);
    std::partial_sum(seconds.begin(), seconds.end(), before_.back().begin() + 1);
  }
  for (int s = 0; s < stages; ++s) kind_.push_back(p.kind.empty() ? 0 : p.kind[s]);
  least_.assign(pieces + 1, 0);
  for (int i = 0; i < pieces; ++i) {
    double least = std::numeric_limits<double>::infinity();
    for (int k : kind_) least = std::min(least, p.seconds[k][i]);
    least_[i + 1] = least_[i] + least;
  }
  message_.assign(pieces + 1, 0);
  if (!p.message.empty()) std::copy(p.message.begin(), p.message.end(), message_.begin() + 1);
  for (int pipe = 0; pipe < pipes(); ++pipe) {
    leaves_.emplace_back(stages + 1);
    for (int s = 0; s < stages; ++s) {
      actors = std::max(actors, actor(s, pipe).value + 1);
      leaves_.back()[s] = s > 0 && actor(s, pipe) != actor(s - 1, pipe);
    }
  }
  stages_of.resize(actors);
  for (int pipe = 0; pipe < pipes(); ++pipe)
    for (int s = 0; s < stages; ++s) stages_of[actor(s, pipe)].push_back(s);
  find_bound();
}

// No less than the mean load, than the most expensive piece alone, and than the first and last pieces of an actor that
// holds stages at the ends of the model.
void Loads::find_bound() {
  const double pipes = p_.actor_of.size();
  bound_ = pipes * least(0, pieces) / actors;
  for (const auto& of : p_.actor_of) {
    for (int i = 0; i < pieces; ++i) bound_ = std::max(bound_, least(i, i + 1));
    double ends = 0;
    for (const auto& other : p_.actor_of) {
      if (other.back() == *of.begin()) ends += least(pieces - 1, pieces);
      if (stages > 1 && *other.begin() == *of.begin()) ends += least(0, 1);
    }
    bound_ = std::max(bound_, ends);
  }
}

IdVector<ActorId, double> Loads::of(const Cuts& cuts) const {
  IdVector<ActorId, double> loads(actors, 0.0);
  for (int pipe = 0; pipe < pipes(); ++pipe)
    for (int s = 0; s < stages; ++s) loads[actor(s, pipe)] += segment(s, cuts[s], cuts[s + 1], pipe);
  return loads;
}

double Loads::largest(const Cuts& cuts) const {
  const IdVector<ActorId, double> loads = of(cuts);
  return *std::max_element(loads.begin(), loads.end());
}

Cuts even_cuts(const Loads& l) {
  Cuts cuts;
  for (i64 s = 0; s <= l.stages; ++s) cuts.push_back(s * l.pieces / l.stages);
  return cuts;
}

std::vector<int> stage_of(const Cuts& cuts) {
  std::vector<int> of;
  for (std::size_t s = 0; s + 1 < cuts.size(); ++s) of.insert(of.end(), cuts[s + 1] - cuts[s], s);
  return of;
}

Cuts cuts_of(const std::vector<int>& stage_of) {
  Cuts cuts{0};
  for (std::size_t i = 1; i < stage_of.size(); ++i)
    if (stage_of[i] != stage_of[i - 1]) cuts.push_back(i);
  cuts.push_back(stage_of.size());
  return cuts;
}

Cuts smallest_stage(const Loads& l) {
  // best[k][i]: the most expensive of k stages over the first i pieces, at its least.
  constexpr double never = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> best(l.stages + 1, std::vector<double>(l.pieces + 1, never));
  std::vector<std::vector<int>> from(l.stages + 1, std::vector<int>(l.pieces + 1, 0));
  best[0][0] = 0;
  for (int k = 1; k <= l.stages; ++k)
    for (int i = k; i <= l.pieces - (l.stages - k); ++i)
      for (int j = i - 1; j >= k - 1; --j) {
        if (l.least(j, i) >= best[k][i]) break;  // longer ones cost more
        const double cost = std::max(best[k - 1][j], l.segment(k - 1, j, i));
        if (cost < best[k][i]) best[k][i] = cost, from[k][i] = j;
      }
  Cuts cuts(l.stages + 1, l.pieces);
  for (int k = l.stages; k > 0; --k) cuts[k - 1] = from[k][cuts[k]];
  return cuts;
}

namespace {

// Smaller is better: the largest load first, then how far apart the loads are.
struct Quality {
  double largest, spread;
  bool better_than(const Quality& o) const {
    const double margin = 1e-12 * o.largest;
    if (largest < o.largest - margin) return true;
    return largest <= o.largest && spread < o.spread * (1 - 1e-12);
  }
};
Quality quality(const Loads& l, const Cuts& cuts) {
  Quality q{0, 0};
  for (double load : l.of(cuts)) q.largest = std::max(q.largest, load), q.spread += load * load;
  return q;
}

bool ascending(const Cuts& cuts, int first, int last) {
  for (int k = first; k <= last + 1; ++k)
    if (cuts[k] <= cuts[k - 1]) return false;
  return true;
}

}  // namespace

void improve(const Loads& l, Cuts& cuts) {
  Quality now = quality(l, cuts);
  i64 left = 8'000'000;  // stages looked at, so that a compile stays short
  const auto attempt = [&](int first, int last, const Cuts& other) {
    left -= l.stages;
    if (!ascending(other, first, last)) return false;
    const Quality then = quality(l, other);
    if (!then.better_than(now)) return false;
    cuts = other, now = then;
    return true;
  };
  for (bool moved = true; moved && left > 0;) {
    moved = false;
    for (int first = 1; first < l.stages; ++first)
      for (int last = first; last < l.stages && left > 0; ++last)
        for (int by : {-1, 1, -2, 2}) {
          Cuts row = cuts;  // a row of cuts moves together ...
          for (int k = first; k <= last; ++k) row[k] += by;
          moved = attempt(first, last, row) || moved;
          if (first == last) continue;
          Cuts two = cuts;  // ... or two of them towards or away from each other
          two[first] += by, two[last] -= by;
          moved = attempt(first, last, two) || moved;
        }
  }
}

}  // namespace stretto
