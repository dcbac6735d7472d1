#include "stretto/view/inner/compare.h"

#include <algorithm>
#include <map>

#include "stretto/view/scene.h"

namespace stretto {
namespace {

struct Sum {
  int count = 0;
  double total = 0, least = 0, most = 0;
  void add(double length) {
    least = count ? std::min(least, length) : length;
    most = std::max(most, length);
    total += length;
    ++count;
  }
};

// Order of the enum, phases before lanes.
using Kinds = std::map<std::pair<int, int>, Sum>;

Kinds kinds_of(const Scene& s) {
  Kinds kinds;
  for (const Track& track : s.tracks)
    for (const Bar& b : track.bars) {
      const bool phase = b.span->action && track.lane == Lane::compute;
      const Lane lane = track.lane == Lane::compute ? Lane::other : track.lane;
      Sum& sum = kinds[phase ? std::pair(0, int(b.span->action->phase)) : std::pair(1, int(lane))];
      sum.add(b.end - b.start);
    }
  return kinds;
}

Sum idle(const Scene& s) {
  Sum sum;
  for (const double share : s.bubbles) sum.add(std::max(0.0, share * s.length));
  return sum;
}

// What an actor does its ranks do each: counted once, as long as it takes them on average.
Kinds per_actor(const Timeline& t) {
  const Scene s = scene(t);
  Kinds kinds = kinds_of(s);
  kinds[{2, 0}] = idle(s);
  for (auto& [key, sum] : kinds) sum.count /= t.ranks, sum.total /= t.ranks;
  return kinds;
}

}  // namespace

double KindDifference::percent() const { return mean() > 0 && other_count > 0 ? 100 * (other_mean() / mean() - 1) : 0; }

std::vector<KindDifference> compare(const Timeline& first, const Timeline& other) {
  Kinds a = per_actor(first), b = per_actor(other);
  Kinds all = a;
  all.insert(b.begin(), b.end());
  std::vector<KindDifference> out;
  for (const auto& [key, unused] : all) {
    const Sum x = a[key], y = b[key];
    const std::string kind = key.first == 0   ? std::string(1, letter(Phase(key.second)))
                             : key.first == 1 ? std::string(name_of(Lane(key.second)))
                                              : "idle";
    out.push_back({kind, x.count, y.count, x.total, y.total, y.least, y.most});
  }
  return out;
}

}  // namespace stretto
