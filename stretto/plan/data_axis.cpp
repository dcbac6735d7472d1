#include "stretto/plan/inner/data_axis.h"

#include <algorithm>
#include <vector>

#include "stretto/cost/collective.h"

namespace stretto {
namespace {

constexpr i64 small_sample = 1 << 20, large_sample = 1 << 26;  // elements

double sample(const Cluster& c, const std::vector<int>& ranks, CollectiveKind kind, i64 elements) {
  CollectiveShape s{.kind = kind, .dtype = f32, .members = static_cast<int>(ranks.size())};
  const i64 box = kind == CollectiveKind::reduce ? elements : elements / s.members;
  add_box_dim(s, box, 1, 1);
  s.in_step = s.out_step = box;
  return collective_seconds(s, c, ranks);
}

// Gathers and scatters go on beside work: an action takes whichever is longer.
double beside(double work, double collective) { return std::max(work, collective); }

void add_to(PieceFacts& f, const Variant& v, const Link& sum, const Link& gather, double per_param, bool first) {
  const double whole = f.params;
  const double latency = first ? 1 : 0;  // small ones wait for each other, so the last one's counts
  if (v.zero <= 1) f.sums += f.gradients / sum.bandwidth + latency * sum.latency;
  if (v.zero == 1 || v.zero == 2) f.update += whole / gather.bandwidth + latency * gather.latency;
  const double scatter = v.zero >= 2 ? whole * per_param / sum.bandwidth : 0;
  const double gathers = v.zero == 3 ? whole / gather.bandwidth : 0;
  f.F = beside(f.F, gathers), f.I = beside(f.I, gathers);
  f.B = beside(f.B, gathers + scatter);
  if (v.zero >= 1) f.state /= v.data;
  if (v.zero >= 2) f.gradients /= v.data;
  if (v.zero >= 3) f.params /= v.data;
}

}  // namespace

const Link& DataLinks::of(const Variant& v, CollectiveKind kind) {
  const int distance = v.expert * v.context * v.tensor;
  const auto [it, fresh] = known_.try_emplace({v.data, distance, kind});
  if (!fresh) return it->second;
  std::vector<int> ranks;
  for (int i = 0; i < v.data; ++i) ranks.push_back(i * distance);
  const double a = sample(cluster_, ranks, kind, small_sample), b = sample(cluster_, ranks, kind, large_sample);
  const double per_byte = (b - a) / (4.0 * (large_sample - small_sample));
  it->second.latency = std::max(0.0, a - per_byte * 4.0 * small_sample);
  if (per_byte > 0) it->second.bandwidth = 1 / per_byte;
  return it->second;
}

StageFacts with_data(const PlanProblem& p, StageFacts f, const Variant& v, DataLinks& links) {
  if (v.data == 1) return f;
  const Link sum = links.of(v, v.zero == 0 ? CollectiveKind::reduce : CollectiveKind::scatter);
  const Link gather = links.of(v, CollectiveKind::gather);
  const double per_param = half(p) ? 2 : 1;  // gradients are f32
  const double layer = f.attention.params + f.mlp.params;
  add_to(f.attention, v, sum, gather, per_param, false);
  add_to(f.mlp, v, sum, gather, per_param, false);
  add_to(f.embedding, v, sum, gather, per_param, true);
  add_to(f.head, v, sum, gather, per_param, false);
  // Of parameters that are gathered two pieces' are whole at a time.
  if (v.zero == 3) f.stage.beside += layer;
  return f;
}

}  // namespace stretto
