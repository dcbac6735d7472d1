// The quick models against the program model, which is the truth: the same facts, other depths.
#include "stretto/plan/inner/stage_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <random>
#include <thread>

#include "plan/problems.h"
#include "stretto/plan/inner/prediction.h"
#include "stretto/plan/space.h"

namespace stretto {
namespace {

struct Difference {
  double seconds = 0, bytes = 0;
  std::string keys;
};

// By schedule against by program, of configurations that are drawn from all.
std::vector<Difference> differences(const PlanProblem& p, const PlanSpace& space, int count) {
  const Enumerated all = enumerate(p, space);
  Predictor predictor(p);
  std::mt19937 random(7);
  std::vector<Difference> found;
  while (std::ssize(found) < count) {
    const RunKeys& k = all.keys[random() % all.keys.size()];
    const Planned quick = predictor.by_schedule(k), exact = predictor.by_program(quick.keys);
    EXPECT_EQ(quick.refused, exact.refused);
    if (!exact.refused.empty()) continue;
    found.push_back({quick.seconds / exact.seconds - 1, quick.bytes / exact.bytes - 1, k.str()});
    if (std::getenv("STRETTO_PRINT"))
      fmt::print("{:7.2f}%  {:7.2f}%  {:.4f} s  {}\n", 100 * found.back().seconds, 100 * found.back().bytes,
                 exact.seconds, k.str());
  }
  return found;
}

double quantile(std::vector<Difference> all, double q, double Difference::*what) {
  std::vector<double> sizes;
  for (const Difference& d : all) sizes.push_back(std::abs(d.*what));
  std::sort(sizes.begin(), sizes.end());
  return sizes[std::min<std::size_t>(sizes.size() - 1, q * sizes.size())];
}

int how_many(int few) { return std::getenv("STRETTO_LONG") ? 200 : few; }

// Collectives that go on beside work of other actions are what schedules know nothing of.
TEST(StageModel, IsNearTheProgramModelForPlainStorage) {
  const PlanSpace space{.zero = {0, 1}, .recompute = {Recompute::none, Recompute::selective, Recompute::full}};
  const auto all = differences(large_llama(32, 128), space, how_many(60));
  EXPECT_LT(quantile(all, 0.5, &Difference::seconds), 0.02);
  EXPECT_LT(quantile(all, 0.9, &Difference::seconds), 0.1);
  EXPECT_LT(quantile(all, 0.5, &Difference::bytes), 0.06);
  EXPECT_LT(quantile(all, 0.9, &Difference::bytes), 0.25);
}

// Links are busy in every microbatch: gathers and scatters are played piece by piece.
TEST(StageModel, IsNearTheProgramModelForStorageThatIsCut) {
  const PlanSpace space{.zero = {2, 3}, .recompute = {Recompute::none, Recompute::selective, Recompute::full}};
  const auto all = differences(large_llama(32, 128), space, how_many(60));
  EXPECT_LT(quantile(all, 0.5, &Difference::seconds), 0.06);
  EXPECT_LT(quantile(all, 0.9, &Difference::seconds), 0.25);
  EXPECT_LT(quantile(all, 0.5, &Difference::bytes), 0.09);
  EXPECT_LT(quantile(all, 0.9, &Difference::bytes), 0.4);
}

// Tasks without collectives of their own keep their order.
TEST(StageModel, IsNearTheProgramModelWithoutCollectivesInTasks) {
  const PlanSpace space{.tensor = {1},
                        .context = {1},
                        .zero = {0, 1, 2, 3},
                        .recompute = {Recompute::none, Recompute::selective, Recompute::full}};
  const auto all = differences(large_llama(32, 128), space, how_many(40));
  EXPECT_LT(quantile(all, 0.5, &Difference::seconds), 0.005);
  EXPECT_LT(quantile(all, 0.95, &Difference::seconds), 0.02);
  EXPECT_LT(quantile(all, 0.5, &Difference::bytes), 0.04);
  EXPECT_LT(quantile(all, 0.9, &Difference::bytes), 0.2);
}

// Nobody waits for a stage that is the only one.
TEST(StageModel, IsNearTheProgramModelWithoutAPipeline) {
  const PlanSpace space{.pipe = {1},
                        .zero = {0, 1, 2, 3},
                        .recompute = {Recompute::none, Recompute::selective, Recompute::layer, Recompute::full}};
  const auto all = differences(large_llama(16, 64), space, how_many(60));
  EXPECT_LT(quantile(all, 0.5, &Difference::seconds), 0.02);
  EXPECT_LT(quantile(all, 0.9, &Difference::seconds), 0.3);
  EXPECT_LT(quantile(all, 0.5, &Difference::bytes), 0.1);
  EXPECT_LT(quantile(all, 0.9, &Difference::bytes), 0.45);
}

Difference difference(const RunKeys& k) {
  const PlanProblem p = large_llama(32, 128);
  Predictor predictor(p);
  const Planned quick = predictor.by_schedule(k), exact = predictor.by_program(quick.keys);
  EXPECT_EQ(exact.refused, "");
  return {quick.seconds / exact.seconds - 1, quick.bytes / exact.bytes - 1, k.str()};
}

TEST(StageModel, KeepsAllMicrobatchesWhereTheScheduleDoes) {
  const RunKeys many{.pipe = 2, .data = 4, .tensor = 4, .sequence = true, .schedule = "gpipe", .microbatches = 32};
  EXPECT_NEAR(difference(many).bytes, 0, 0.03) << "more than are played";
}

// What is made again for a W is there when it begins, and nothing is made again for it.
TEST(StageModel, WeightGradientsByThemselvesHoldLittle) {
  const RunKeys k{.pipe = 4, .data = 8, .zero = 2, .schedule = "zb-h2", .recompute = Recompute::full};
  EXPECT_NEAR(difference(k).bytes, 0, 0.05);
}

// Weight gradients that only fill gaps of their backward take no time of their own, and have no share in any.
TEST(StageModel, SharesNothingThatIsNot) {
  const RunKeys a{.pipe = 2,
                  .data = 2,
                  .tensor = 4,
                  .context = 2,
                  .sequence = true,
                  .zero = 2,
                  .schedule = "interleaved-1f1b",
                  .chunks = 4,
                  .microbatches = 64},
      b{.pipe = 2,
        .data = 2,
        .tensor = 8,
        .sequence = true,
        .zero = 3,
        .schedule = "interleaved-zb",
        .chunks = 4,
        .microbatches = 16};
  for (const RunKeys& k : {a, b}) EXPECT_LT(std::abs(difference(k).seconds), 0.5) << k.str();
}

// Other software on real devices: messages that are waited for, backward as one thing, sums and gathers that it hides.
TEST(StageModel, IsNearTheProgramModelUnderStacks) {
  const PlanSpace space{.zero = {0, 1}, .recompute = {Recompute::none, Recompute::selective}};
  for (const char* stack : {"megatron-2021", "megatron-2023", "nemo"}) {
    PlanProblem p = large_llama(32, 128);
    p.cluster.cluster = cluster_of(read_device("a100-80g"), read_stack(stack));
    p.parallel.overlap = Overlap::none;  // as these stacks have it: they say what they hide
    const auto all = differences(p, space, how_many(20));
    EXPECT_LT(quantile(all, 0.5, &Difference::seconds), 0.006) << stack;
    EXPECT_LT(quantile(all, 0.9, &Difference::seconds), 0.05) << stack;
    EXPECT_LT(quantile(all, 0.5, &Difference::bytes), 0.02) << stack;
    EXPECT_LT(quantile(all, 0.9, &Difference::bytes), 0.3) << stack;
  }
}

// States without copies and cut by more ranks, a loss of its own, products that are kept, what an allocator reserves.
TEST(StageModel, KnowsTheMemoryOfAStack) {
  PlanProblem p = large_llama(32, 128);
  p.cluster.cluster = cluster_of(read_device("h100-sxm"), read_stack("torchtitan"));
  p.parallel.overlap = Overlap::none;
  const PlanSpace space{.zero = {0, 1, 2, 3}, .recompute = {Recompute::none, Recompute::selective, Recompute::full}};
  const auto all = differences(p, space, how_many(25));
  EXPECT_LT(quantile(all, 0.5, &Difference::bytes), 0.008);
  EXPECT_LT(quantile(all, 0.9, &Difference::bytes), 0.15);
}

// Several configurations of one schedule, on threads: each gets what it gets alone.
TEST(Predictor, PlaysSchedulesOnThreads) {
  const Each on_threads = [](std::size_t n, const std::function<void(std::size_t)>& function) {
    std::atomic<std::size_t> started = 0;
    std::vector<std::thread> all;
    for (std::size_t i = 0; i < n; ++i)
      all.emplace_back([&, i] {
        for (++started; started < n;) std::this_thread::yield();
        function(i);
      });
    for (std::thread& t : all) t.join();
  };
  const PlanProblem p = large_llama(32, 128);
  std::vector<RunKeys> keys;
  for (const char* schedule : {"zb-h1", "1f1b"})
    for (const int tensor : {1, 2, 4, 8})
      for (const int zero : {0, 1, 2})
        keys.push_back({.pipe = 4,
                        .data = 8 / tensor,
                        .tensor = tensor,
                        .sequence = tensor > 1,
                        .zero = zero,
                        .schedule = schedule,
                        .microbatches = 16});
  std::erase_if(keys, [](const RunKeys& k) { return k.data == 1 && k.zero > 0; });
  Predictor alone(p), together(p, on_threads);
  const auto played = [&](Predictor& predictor) {
    std::vector<Ready> ready;
    for (const RunKeys& k : keys) ready.push_back(predictor.ready(k));
    return predictor.by_schedule(ready);
  };
  const std::vector<Planned> a = played(alone), b = played(together);
  for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(a[i].seconds, b[i].seconds) << keys[i].str();
}

}  // namespace
}  // namespace stretto
