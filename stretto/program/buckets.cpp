#include "stretto/program/buckets.h"

#include <algorithm>
#include <numeric>

namespace stretto {

std::vector<GradientBucket> buckets_of(const Program& p, u64 most) {
  const Step& s = *p.step;
  std::vector<GradientBucket> all;
  std::vector<std::uint32_t> order(s.accumulators.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t x, std::uint32_t y) { return s.accumulators[x].piece > s.accumulators[y].piece; });
  for (std::uint32_t g : order) {
    const Accumulator& a = s.accumulators[g];
    if (a.summed.empty()) continue;
    const u64 bytes = s.bytes(a.type);
    const int stage = p.stage_of[a.piece], actor = p.actor_of(a.piece, a.pipe);
    const auto fits = [&](const GradientBucket& b) {
      return b.actor == actor && b.stage == stage && b.axes == a.summed && b.dtype == a.type.dtype;
    };
    const auto newest = std::find_if(all.rbegin(), all.rend(), fits);
    auto it = newest == all.rend() ? all.end() : newest.base() - 1;
    if (it == all.end() || it->bytes + bytes > most) {
      all.push_back({.actor = actor, .stage = stage, .axes = a.summed, .dtype = a.type.dtype});
      it = all.end() - 1;
    }
    it->accumulators.push_back(g);
    it->bytes += bytes;
  }
  return all;
}

}  // namespace stretto
