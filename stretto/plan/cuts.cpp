#include "stretto/plan/cuts.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "stretto/base/error.h"

namespace stretto {
namespace {

struct Sums {
  explicit Sums(const std::vector<double>& seconds) : before(seconds.size() + 1) {
    for (std::size_t i = 0; i < seconds.size(); ++i) before[i + 1] = before[i] + seconds[i];
  }
  std::vector<double> before;
  int pieces() const { return static_cast<int>(before.size()) - 1; }
  double of(int begin, int end) const { return before[end] - before[begin]; }
};

// How many stages of at most `longest` the pieces from each one on take; none is longer, or there are too many.
std::vector<int> stages_from(const Sums& s, double longest) {
  std::vector<int> need(s.pieces() + 1);
  for (int i = s.pieces() - 1, end = s.pieces(); i >= 0; --i) {
    while (end > i + 1 && s.of(i, end) > longest) --end;
    need[i] = s.of(i, end) > longest ? s.pieces() + 1 : 1 + need[end];
  }
  return need;
}

// The least that the longest of so many stages can be, to a part in 1e6.
double shortest_longest(const Sums& s, int stages) {
  double low = 0, high = s.before.back();
  for (int i = 0; i + 1 < s.pieces() + 1; ++i) low = std::max(low, s.of(i, i + 1));
  low = std::max(low, high / stages);
  if (stages_from(s, low)[0] <= stages) return low;
  while (high - low > 1e-6 * high) {
    const double middle = (low + high) / 2;
    (stages_from(s, middle)[0] <= stages ? high : low) = middle;
  }
  return high;
}

}  // namespace

std::vector<int> even_stages(const std::vector<double>& seconds, int stages) {
  const Sums s(seconds);
  STRETTO_ASSERT(stages >= 1 && stages <= s.pieces());
  const double longest = shortest_longest(s, stages) * (1 + 1e-9), total = s.before.back();
  const std::vector<int> need = stages_from(s, longest);
  std::vector<int> counts;
  int begin = 0;
  for (int k = 1; k < stages; ++k) {
    // The end nearest to where an even cut would be, with enough pieces and little enough work left for the others.
    const double goal = total * k / stages;
    int best = begin + 1;
    std::optional<double> distance;
    for (int end = begin + 1; end <= s.pieces() - (stages - k) && s.of(begin, end) <= longest; ++end) {
      if (need[end] > stages - k) continue;
      const double off = std::abs(s.before[end] - goal);
      if (!distance || off < *distance) best = end, distance = off;
    }
    counts.push_back(best - begin);
    begin = best;
  }
  counts.push_back(s.pieces() - begin);
  return counts;
}

}  // namespace stretto
