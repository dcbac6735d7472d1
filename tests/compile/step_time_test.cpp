#include "stretto/compile/step_time.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "stretto/compile/compile.h"
#include "stretto/models/family.h"

namespace stretto {
namespace {

Compiled two_replicas(int layers) {
  return compile(
      make_model({.family = "gpt2", .layers = layers, .width = 1024, .heads = 8, .context = 16, .vocab = 64}, 4), sgd(),
      {.microbatches = 2}, {.names = {.data = 2}});
}

TEST(StepTime, WithoutLinksNothingIsWaitedFor) {
  const Compiled c = two_replicas(2);
  const StepTime t = step_time(*c.program, {.machine = {.flops = 1e12}});
  EXPECT_GT(t.seconds, 0);
  EXPECT_EQ(t.sums, 0);
  EXPECT_EQ(t.exposed, 0);
}

TEST(StepTime, SumsOfGradientsAreHiddenBehindBackward) {
  const Compiled c = two_replicas(4);
  const Machine machine{.flops = 1e12};
  const StepTime alone = step_time(*c.program, {.machine = machine});
  Cluster cluster{.machine = machine, .between = {.bandwidth = 1e9}};
  cluster.between.bandwidth *= step_time(*c.program, cluster).sums / (0.05 * alone.seconds);
  const StepTime t = step_time(*c.program, cluster);
  EXPECT_NEAR(t.sums, 0.05 * alone.seconds, 1e-9 * t.sums);
  EXPECT_GT(t.exposed, 0);  // the last bucket has nothing behind it
  EXPECT_LT(t.exposed, 0.5 * t.sums);
}

// A bucket's sum starts behind the last task that adds to it, not behind all of backward.
TEST(StepTime, FirstSumStartsBeforeTheLastTask) {
  const Compiled c = two_replicas(4);
  const std::vector<Instruction>& code = c.program->actors[0].code;
  ASSERT_GT(c.program->buckets.size(), 2u);
  const auto first =
      std::find_if(code.begin(), code.end(), [](const Instruction& i) { return std::holds_alternative<StartSum>(i); });
  const auto later = std::count_if(first, code.end(), [&](const Instruction& i) {
    const stretto::Run* r = std::get_if<stretto::Run>(&i);
    return r && c.program->step->tasks[r->task].part == Part::W;
  });
  EXPECT_GE(later, 4);
}

}  // namespace
}  // namespace stretto
