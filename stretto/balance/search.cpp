// The exact searches of balance(). Both give up after a number of steps that takes a fraction of a second.
#include <algorithm>
#include <limits>
#include <unordered_map>

#include "stretto/balance/loads.h"

namespace stretto {
namespace {
constexpr i64 most_steps = 40'000'000;
}

// From both ends inwards: level s takes stage s from the left and the s-th last from the right, which lie on one actor.
// What is left in the middle depends on where the two ends are and on nothing else, so one number per pair of ends is
// enough: the smallest largest load that leads there. Pairs that cannot stay below the limit are left out.
Cuts search_folded(const Loads& l, double limit, bool& finished) {
  struct State {
    int left, right;
    double largest;
    std::uint32_t from;
  };
  const int levels = (l.stages + 1) / 2;
  std::vector<std::vector<State>> reached(levels + 1);
  reached[0].push_back({0, l.pieces, 0, 0});
  i64 steps = 0;
  finished = false;
  for (int s = 0; s < levels; ++s) {
    const int mirror = l.stages - 1 - s, stages_inside = std::max(0, l.stages - 2 * (s + 1));
    const int actors_inside = (stages_inside + 1) / 2;
    // A bidirectional placement holds both stages of a level on both of its actors: one of them tells the load.
    std::unordered_map<i64, std::uint32_t> known;
    std::vector<State>& next = reached[s + 1];
    for (std::uint32_t from = 0; from < reached[s].size(); ++from) {
      const State state = reached[s][from];
      const auto arrive = [&](int left, int right, double load) {
        const double largest = std::max(state.largest, load);
        if (!(largest < limit)) return;
        const auto [it, fresh] = known.try_emplace(i64{left} << 32 | right, next.size());
        if (fresh)
          next.push_back({left, right, largest, from});
        else if (largest < next[it->second].largest)
          next[it->second] = {left, right, largest, from};
      };
      if (mirror == s) {  // the middle of an odd number of stages, once or twice
        const double times = l.stages_of[l.actor(s)].size();
        arrive(state.right, state.right, times * l.segment(s, state.left, state.right));
        continue;
      }
      const int room = state.right - state.left - stages_inside;
      for (int take = 1; take < room; ++take) {
        const int left = state.left + take;
        if (l.least(state.left, left) >= limit) break;
        const double mine = l.segment(s, state.left, left);
        for (int right = stages_inside == 0 ? left : state.right - 1; right >= left + stages_inside; --right) {
          if (++steps > most_steps) return {};
          if (l.least(state.left, left) + l.least(right, state.right) >= limit) break;
          if (stages_inside == 0 && right != left) break;
          if (l.least(left, right) < limit * actors_inside || stages_inside == 0)
            arrive(left, right, mine + l.segment(mirror, right, state.right));
        }
      }
    }
  }
  finished = true;
  const State* end = nullptr;
  for (const State& state : reached.back())
    if (!end || state.largest < end->largest) end = &state;
  if (!end) return {};
  Cuts cuts(l.stages + 1, l.pieces);
  for (int s = levels; s > 0; --s) {
    cuts[s] = end->left;
    cuts[l.stages - s] = end->right;
    end = &reached[s - 1][end->from];
  }
  cuts[0] = 0;
  return cuts;
}

namespace {
class Branching {
 public:
  Branching(const Loads& l, double limit) : l_(l), limit_(limit), loads_(l.actors, 0.0), last_(l.actors, 0) {
    for (std::size_t a = 0; a < l.stages_of.size(); ++a)
      for (int s : l.stages_of[a]) last_[a] = std::max(last_[a], s);
    pipes_ = 0;
    for (const std::vector<int>& held : l.stages_of) pipes_ += 1.0 * held.size() / l.stages;
    cuts_.push_back(0);
  }
  Cuts best;
  bool run() { return go(0, 0); }

 private:
  // Stages from the first to the last; false when it takes too long.
  bool go(int s, int begin) {
    if (s == l_.stages) {
      limit_ = *std::max_element(loads_.begin(), loads_.end());
      best = cuts_;
      return true;
    }
    const int end_at_most = l_.pieces - (l_.stages - 1 - s);
    for (int end = s + 1 == l_.stages ? l_.pieces : begin + 1; end <= end_at_most; ++end) {
      if (++steps_ > most_steps / 8) return false;
      if (limit_ <= l_.bound() * (1 + 1e-12)) return true;
      if (l_.least(begin, end) >= limit_) break;
      const std::vector<double> before = loads_;
      bool fits = true;
      for (int pipe = 0; pipe < l_.pipes(); ++pipe) {
        double& load = loads_[l_.actor(s, pipe)];
        load += l_.segment(s, begin, end, pipe);
        fits = fits && load < limit_;
      }
      cuts_.push_back(end);
      const bool on = !fits || room(s) * (1 + 1e-12) < pipes_ * l_.least(end, l_.pieces) || go(s + 1, end);
      cuts_.pop_back();
      loads_ = before;
      if (!on) return false;
    }
    return true;
  }
  // What the actors that still get stages may take on.
  double room(int done) const {
    double sum = 0;
    for (std::size_t a = 0; a < loads_.size(); ++a)
      if (last_[a] > done) sum += limit_ - loads_[a];
    return sum;
  }

  const Loads& l_;
  double limit_, pipes_;
  std::vector<double> loads_;
  std::vector<int> last_;  // per actor: its last stage
  Cuts cuts_;
  i64 steps_ = 0;
};
}  // namespace

Cuts search_any(const Loads& l, double limit, bool& finished) {
  Branching b(l, limit);
  finished = b.run();
  return b.best;
}

}  // namespace stretto
