#include "stretto/balance/even_stages.h"

#include <algorithm>
#include <cmath>
#include <map>
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
struct Stage {
  const Sums* sums;
  int most;
  int pieces() const { return sums->pieces(); }
  double of(int begin, int end) const { return sums->of(begin, end); }
  bool takes(int begin, int end, double longest) const { return end - begin <= most && of(begin, end) <= longest; }
};

// The first piece that each stage may begin with if it and those after it take at most `longest` each.
std::vector<int> firsts(const std::vector<Stage>& stages, double longest) {
  std::vector<int> first(stages.size() + 1, stages.front().pieces());
  for (std::size_t k = stages.size(); k-- > 0;) {
    int begin = first[k + 1];
    while (begin > 0 && stages[k].takes(begin - 1, first[k + 1], longest)) --begin;
    first[k] = begin;
  }
  return first;
}

// The least that the longest stage can be, to a part in 1e6.
double shortest_longest(const std::vector<Stage>& stages) {
  const int pieces = stages.front().pieces();
  double low = 0, high = 0, least = stages.front().of(0, pieces);
  for (const Stage& s : stages) high = std::max(high, s.of(0, pieces)), least = std::min(least, s.of(0, pieces));
  for (int i = 0; i < pieces; ++i) {
    double piece = high;
    for (const Stage& s : stages) piece = std::min(piece, s.of(i, i + 1));
    low = std::max(low, piece);
  }
  low = std::max(low, least / double(stages.size()));
  if (firsts(stages, low)[0] == 0) return low;
  while (high - low > 1e-6 * high) {
    const double middle = (low + high) / 2;
    (firsts(stages, middle)[0] == 0 ? high : low) = middle;
  }
  return high;
}

std::vector<int> even(const std::vector<Stage>& stages) {
  const int count = static_cast<int>(stages.size()), pieces = stages.front().pieces();
  STRETTO_ASSERT(count >= 1 && count <= pieces);
  const double longest = shortest_longest(stages) * (1 + 1e-9);
  const std::vector<int> first = firsts(stages, longest);
  if (first[0] != 0) return {};
  double mean = 0, done = 0;
  for (const Stage& s : stages) mean += s.of(0, pieces) / count / count;
  std::vector<int> counts;
  int begin = 0;
  for (int k = 1; k < count; ++k) {
    // The end nearest to where an even cut would be, with enough pieces and little enough work left for the others.
    const Stage& s = stages[k - 1];
    int best = begin + 1;
    std::optional<double> distance;
    for (int end = begin + 1; end <= pieces - (count - k) && s.takes(begin, end, longest); ++end) {
      if (end < first[k]) continue;
      const double off = std::abs(done + s.of(begin, end) - mean * k);
      if (!distance || off < *distance) best = end, distance = off;
    }
    counts.push_back(best - begin);
    done += s.of(begin, best);
    begin = best;
  }
  counts.push_back(pieces - begin);
  return counts;
}

}  // namespace

std::vector<int> even_stages(const std::vector<double>& seconds, int stages) {
  const Sums s(seconds);
  return even(std::vector<Stage>(stages, {&s, s.pieces()}));
}

std::vector<int> even_stages(const std::vector<StageRoom>& rooms) {
  std::map<const std::vector<double>*, Sums> kinds;
  std::vector<Stage> stages;
  for (const StageRoom& r : rooms)
    stages.push_back({&kinds.try_emplace(r.seconds, Sums(*r.seconds)).first->second, r.most});
  return even(stages);
}

}  // namespace stretto
