#include "stretto/balance/loads.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace stretto {

Loads::Loads(const BalanceProblem& p) : p_(p) {
  STRETTO_ASSERT(!p.seconds.empty() && !p.actor_of.empty());
  pieces = int(p.seconds[0].size());
  stages = int(p.actor_of[0].size());
  STRETTO_ASSERT(p.kind.empty() || int(p.kind.size()) == stages);
  STRETTO_ASSERT(p.message.empty() || int(p.message.size()) + 1 == pieces);
  for (const std::vector<double>& seconds : p.seconds) {
    STRETTO_ASSERT(int(seconds.size()) == pieces);
    before_.emplace_back(std::size_t(pieces) + 1, 0.0);
    std::partial_sum(seconds.begin(), seconds.end(), before_.back().begin() + 1);
  }
  for (int s = 0; s < stages; ++s) kind_.push_back(p.kind.empty() ? 0 : std::size_t(p.kind[std::size_t(s)]));
  least_.assign(std::size_t(pieces) + 1, 0);
  for (int i = 0; i < pieces; ++i) {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t k : kind_) least = std::min(least, p.seconds[k][std::size_t(i)]);
    least_[std::size_t(i) + 1] = least_[std::size_t(i)] + least;
  }
  message_.assign(std::size_t(pieces) + 1, 0);
  if (!p.message.empty()) std::copy(p.message.begin(), p.message.end(), message_.begin() + 1);
  for (const std::vector<int>& of : p.actor_of) {
    for (int a : of) actors = std::max(actors, a + 1);
    leaves_.emplace_back(std::size_t(stages) + 1, char(0));
    for (std::size_t s = 1; s < of.size(); ++s) leaves_.back()[s] = of[s] != of[s - 1];
  }
  stages_of.resize(std::size_t(actors));
  for (const std::vector<int>& of : p.actor_of)
    for (int s = 0; s < stages; ++s) stages_of[std::size_t(of[std::size_t(s)])].push_back(s);
  find_bound();
}

// The mean; the dearest piece, as often as its stage is held; what the actors of the first and the last stage hold.
void Loads::find_bound() {
  const double pipes = double(p_.actor_of.size());
  bound_ = pipes * least(0, pieces) / actors;
  for (const std::vector<int>& of : p_.actor_of) {
    for (int i = 0; i < pieces; ++i) bound_ = std::max(bound_, least(i, i + 1));
    double ends = 0;
    for (const std::vector<int>& other : p_.actor_of) {
      if (other.back() == of[0]) ends += least(pieces - 1, pieces);
      if (stages > 1 && other[0] == of[0]) ends += least(0, 1);
    }
    bound_ = std::max(bound_, ends);
  }
}

std::vector<double> Loads::of(const Cuts& cuts) const {
  std::vector<double> loads(std::size_t(actors), 0.0);
  for (std::size_t pipe = 0; pipe < p_.actor_of.size(); ++pipe)
    for (int s = 0; s < stages; ++s)
      loads[std::size_t(p_.actor_of[pipe][std::size_t(s)])] +=
          segment(s, cuts[std::size_t(s)], cuts[std::size_t(s) + 1], int(pipe));
  return loads;
}

double Loads::largest(const Cuts& cuts) const {
  const std::vector<double> loads = of(cuts);
  return *std::max_element(loads.begin(), loads.end());
}

Cuts smallest_stage(const Loads& l) {
  // best[k][i]: the most expensive of k stages over the first i pieces, at its least.
  const std::size_t n = std::size_t(l.pieces), stages = std::size_t(l.stages);
  constexpr double never = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> best(stages + 1, std::vector<double>(n + 1, never));
  std::vector<std::vector<int>> from(stages + 1, std::vector<int>(n + 1, 0));
  best[0][0] = 0;
  for (std::size_t k = 1; k <= stages; ++k)
    for (std::size_t i = k; i <= n - (stages - k); ++i)
      for (std::size_t j = i; j-- > k - 1;) {
        if (l.least(int(j), int(i)) >= best[k][i]) break;  // longer ones cost more
        const double cost = std::max(best[k - 1][j], l.segment(int(k) - 1, int(j), int(i)));
        if (cost < best[k][i]) best[k][i] = cost, from[k][i] = int(j);
      }
  Cuts cuts(stages + 1, int(n));
  for (std::size_t k = stages; k > 0; --k) cuts[k - 1] = from[k][std::size_t(cuts[k])];
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

bool valid(const Cuts& cuts, std::size_t first, std::size_t last) {
  for (std::size_t k = first; k <= last + 1; ++k)
    if (cuts[k] <= cuts[k - 1]) return false;
  return true;
}

}  // namespace

void improve(const Loads& l, Cuts& cuts) {
  Quality now = quality(l, cuts);
  const std::size_t stages = std::size_t(l.stages);
  i64 left = 8'000'000;  // stages looked at, so that a compile stays short
  const auto attempt = [&](std::size_t first, std::size_t last, const Cuts& other) {
    left -= l.stages;
    if (!valid(other, first, last)) return false;
    const Quality then = quality(l, other);
    if (!then.better_than(now)) return false;
    cuts = other, now = then;
    return true;
  };
  for (bool moved = true; moved && left > 0;) {
    moved = false;
    for (std::size_t first = 1; first < stages; ++first)
      for (std::size_t last = first; last < stages && left > 0; ++last)
        for (int by : {-1, 1, -2, 2}) {
          Cuts row = cuts;  // a row of cuts moves together ...
          for (std::size_t k = first; k <= last; ++k) row[k] += by;
          moved = attempt(first, last, row) || moved;
          if (first == last) continue;
          Cuts two = cuts;  // ... or two of them towards or away from each other
          two[first] += by, two[last] -= by;
          moved = attempt(first, last, two) || moved;
        }
  }
}

}  // namespace stretto
