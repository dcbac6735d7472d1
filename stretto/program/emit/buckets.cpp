#include "stretto/program/emit/buckets.h"

#include <algorithm>

#include "stretto/ops/all_reduce.h"
#include "stretto/step/task_builder.h"

namespace stretto {
namespace {

IdVector<BucketId, GradientBucket> buckets_of(const Step& s, const Program& p, u64 most) {
  IdVector<BucketId, GradientBucket> all;
  std::vector<AccumulatorId> order;
  for (AccumulatorId g : s.accumulators.ids()) order.push_back(g);
  std::stable_sort(order.begin(), order.end(),
                   [&](AccumulatorId x, AccumulatorId y) { return s.accumulators[x].piece > s.accumulators[y].piece; });
  for (AccumulatorId g : order) {
    const Accumulator& a = s.accumulators[g];
    if (a.summed.empty()) continue;
    const u64 bytes = s.bytes(a.type);
    const StageId stage = p.stage_of[a.piece];
    const ActorId actor = p.actor_of(a.piece, a.pipe);
    GradientBucket* newest = nullptr;
    for (GradientBucket& b : all)
      if (b.actor == actor && b.stage == stage && b.axes == a.summed && b.dtype == a.type.dtype) newest = &b;
    if (!newest || newest->bytes + bytes > most) {
      all.push_back({.actor = actor, .stage = stage, .axes = a.summed, .dtype = a.type.dtype});
      newest = &all.back();
    }
    newest->accumulators.push_back(g);
    newest->bytes += aligned(bytes);
  }
  return all;
}

}  // namespace

u64 bucket_bytes(const Link& link, int ranks) {
  constexpr double least = 64 << 10, most = 8 << 20;
  if (link.latency == 0) return static_cast<u64>(least);
  return static_cast<u64>(std::clamp(20 * ranks * link.latency * link.bandwidth, least, most));
}

void add_sums(Step& s, const Program& p, u64 most) {
  s.buckets = buckets_of(s, p, most);
  BodyPool pool;
  for (BucketId b : s.buckets.ids()) {
    const GradientBucket& bucket = s.buckets[b];
    TaskBuilder task({.part = Part::sum, .about = b});
    const Dim flat{"flat", static_cast<i64>(bucket.bytes / size_of(bucket.dtype))};
    task.result(all_reduce(task.argument(bucket.dtype, flat, b), bucket.axes), b);
    s.tasks.push_back(std::move(task).finish(pool));
  }
}

}  // namespace stretto
