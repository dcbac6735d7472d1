// Runs on two cores against two independent serial runs side by side: what the machine can do at all.
//
//   const Turns turns = take_turns(rounds, runs.size(), 3, [&] { return side_by_side(one, two, batch, tokens); },
//                                  [&](int r) { return MeasuredTurn{.speed = ...}; });
//   interval(turns.shares[r])
#pragma once
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "stretto/stretto.h"

namespace stretto {

// Tokens per second of two independent runs that make one step each, at the same time.
inline double side_by_side(Trainer& one, Trainer& two, const Batch& batch, double tokens) {
  double first = 0, second = 0;
  std::thread other([&] { second = two.step(batch).seconds; });
  first = one.step(batch).seconds;
  other.join();
  return tokens / first + tokens / second;
}

struct MeasuredTurn {
  double speed = 0;           // tokens per second
  std::vector<double> other;  // whatever else is kept of a step
};
struct Turns {
  std::vector<double> limits;
  std::vector<std::vector<double>> speeds, shares;       // of each run; shares are of the limit
  std::vector<std::vector<std::vector<double>>> others;  // of each run and kind
};

// Everybody makes a step to get warm. Then the runs take turns, forwards in one round and backwards in the next, and
// the limit is taken between every few of them. A run is compared with the mean of the limits before and after it: a
// machine that gets slower does so for both.
inline Turns take_turns(int rounds, int runs, int between_limits, const std::function<double()>& limit,
                        const std::function<MeasuredTurn(int)>& once) {
  Turns t;
  t.speeds.resize(runs), t.shares.resize(runs), t.others.resize(runs);
  limit();
  for (int run = 0; run < runs; ++run) t.others[run].resize(once(run).other.size());
  t.limits.push_back(limit());
  std::vector<std::pair<int, double>> since;  // the last limit
  for (int turn = 0; turn < rounds * runs; ++turn) {
    const int place = turn % runs, run = turn / runs % 2 ? runs - 1 - place : place;
    const MeasuredTurn now = once(run);
    t.speeds[run].push_back(now.speed);
    for (std::size_t k = 0; k < now.other.size(); ++k) t.others[run][k].push_back(now.other[k]);
    since.emplace_back(run, now.speed);
    if (std::cmp_less(since.size(), between_limits) && turn + 1 < rounds * runs) continue;
    const double before = t.limits.back(), after = limit();
    for (const auto& [r, speed] : since) t.shares[r].push_back(2 * speed / (before + after));
    since.clear();
    t.limits.push_back(after);
  }
  return t;
}

}  // namespace stretto
