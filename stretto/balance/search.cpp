// The exact searches of balance(). Both give up after a number of steps that takes a fraction of a second.
#include <algorithm>
#include <limits>
#include <unordered_map>

#include "stretto/balance/inner/loads.h"

namespace stretto {
namespace {
constexpr i64 most_steps = 40'000'000;
}

namespace {
// From both ends inwards: level s takes stage s from the left and the s-th last from the right, which lie on one actor.
// What is left in the middle depends on where the two ends are and on nothing else, so one number per pair of ends is
// enough: the smallest largest load that leads there. Pairs that cannot stay below the limit are left out. A
// bidirectional placement holds both stages of a level on both of its actors: one of them tells the load.
class Folding {
 public:
  Folding(const Loads& l, double limit) : l_(l), limit_(limit), reached_((l.stages + 1) / 2 + 1) {
    reached_[0].push_back({0, l.pieces, 0, 0});
  }

  Found run() {
    for (int s = 0; s + 1 < std::ssize(reached_); ++s)
      for (std::uint32_t from = 0; from < reached_[s].size(); ++from)
        if (!extend(s, from)) return {};
    const std::vector<State>& ends = reached_.back();
    if (ends.empty()) return {.finished = true};
    const auto best = std::min_element(ends.begin(), ends.end(),
                                       [](const State& a, const State& b) { return a.largest < b.largest; });
    return {.cuts = cuts_to(*best), .finished = true};
  }

 private:
  struct State {
    int left, right;
    double largest;
    std::uint32_t from;
  };

  // All that follows on one state; false when it takes too long.
  bool extend(int s, std::uint32_t from) {
    const State state = reached_[s][from];
    const int mirror = l_.stages - 1 - s, stages_inside = std::max(0, l_.stages - 2 * (s + 1));
    if (mirror == s) {  // the middle of an odd number of stages, once or twice
      const double times = l_.stages_of[l_.actor(s)].size();
      arrive(s, from, state.right, state.right, times * l_.segment(s, state.left, state.right));
      return true;
    }
    const int room = state.right - state.left - stages_inside, actors_inside = (stages_inside + 1) / 2;
    for (int take = 1; take < room; ++take) {
      const int left = state.left + take;
      if (l_.least(state.left, left) >= limit_) break;
      const double mine = l_.segment(s, state.left, left);
      for (int right = stages_inside == 0 ? left : state.right - 1; right >= left + stages_inside; --right) {
        if (++steps_ > most_steps) return false;
        if (l_.least(state.left, left) + l_.least(right, state.right) >= limit_) break;
        if (stages_inside == 0 && right != left) break;
        if (l_.least(left, right) < limit_ * actors_inside || stages_inside == 0)
          arrive(s, from, left, right, mine + l_.segment(mirror, right, state.right));
      }
    }
    return true;
  }

  void arrive(int s, std::uint32_t from, int left, int right, double load) {
    const State next{left, right, std::max(reached_[s][from].largest, load), from};
    if (!(next.largest < limit_)) return;
    if (level_ != s) known_.clear(), level_ = s;
    std::vector<State>& there = reached_[s + 1];
    const auto [it, fresh] = known_.try_emplace(i64{left} << 32 | right, there.size());
    if (fresh)
      there.push_back(next);
    else if (next.largest < there[it->second].largest)
      there[it->second] = next;
  }

  Cuts cuts_to(State end) const {
    Cuts cuts(l_.stages + 1, l_.pieces);
    for (int s = std::ssize(reached_) - 1; s > 0; --s) {
      cuts[s] = end.left;
      cuts[l_.stages - s] = end.right;
      end = reached_[s - 1][end.from];
    }
    cuts[0] = 0;
    return cuts;
  }

  const Loads& l_;
  const double limit_;
  std::vector<std::vector<State>> reached_;       // per level
  std::unordered_map<i64, std::uint32_t> known_;  // of one level: states by their two ends
  int level_ = 0;
  i64 steps_ = 0;
};
}  // namespace

Found search_folded(const Loads& l, double limit) { return Folding(l, limit).run(); }

namespace {
class Branching {
 public:
  Branching(const Loads& l, double limit) : l_(l), limit_(limit), loads_(l.actors, 0.0), last_(l.actors, 0) {
    for (const ActorId a : l.stages_of.ids())
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
      bool fits = true;
      for (int pipe = 0; pipe < l_.pipes(); ++pipe) {
        double& load = loads_[l_.actor(s, pipe)];
        before_.push_back(load);
        load += l_.segment(s, begin, end, pipe);
        fits = fits && load < limit_;
      }
      cuts_.push_back(end);
      const bool on = !fits || room(s) * (1 + 1e-12) < pipes_ * l_.least(end, l_.pieces) || go(s + 1, end);
      cuts_.pop_back();
      for (int pipe = l_.pipes(); pipe-- > 0; before_.pop_back()) loads_[l_.actor(s, pipe)] = before_.back();
      if (!on) return false;
    }
    return true;
  }
  // What the actors that still get stages may take on.
  double room(int done) const {
    double sum = 0;
    for (const ActorId a : loads_.ids())
      if (last_[a] > done) sum += limit_ - loads_[a];
    return sum;
  }

  const Loads& l_;
  double limit_, pipes_;
  IdVector<ActorId, double> loads_;
  std::vector<double> before_;   // of the stages so far: the loads to which they were added
  IdVector<ActorId, int> last_;  // its last stage
  Cuts cuts_;
  i64 steps_ = 0;
};
}  // namespace

Found search_any(const Loads& l, double limit) {
  Branching b(l, limit);
  const bool finished = b.run();
  return {.cuts = b.best, .finished = finished};
}

}  // namespace stretto
