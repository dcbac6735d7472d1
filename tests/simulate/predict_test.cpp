#include "stretto/simulate/predict.h"

#include <gmock/gmock.h>

#include "stretto/compile/compile.h"
#include "stretto/models/family.h"

namespace stretto {
namespace {

Compiled compiled(const Parallel& parallel) {
  ModelConfig c{.layers = 2, .width = 32, .heads = 2, .context = 16, .vocab = 64};
  return compile(make_model(complete(c), 8), adamw(), {.microbatches = 8}, parallel);
}

TEST(Predict, SumsTheTasksOfAStage) {
  const Compiled one = compiled({}), two = compiled({.mesh = {{"pipe", 2}}});
  const auto whole = stage_costs(*one.program), halves = stage_costs(*two.program);
  ASSERT_EQ(whole.size(), 1u);
  ASSERT_EQ(halves.size(), 2u);
  EXPECT_NEAR(halves[StageId(0)].F + halves[StageId(1)].F, whole[StageId(0)].F, 1e-9 * whole[StageId(0)].F);
  EXPECT_NEAR(halves[StageId(0)].I + halves[StageId(1)].I, whole[StageId(0)].I, 1e-9 * whole[StageId(0)].I);
  EXPECT_NEAR(halves[StageId(0)].W + halves[StageId(1)].W, whole[StageId(0)].W, 1e-9 * whole[StageId(0)].W);
  EXPECT_EQ(halves[StageId(0)].message_bytes, 1.0 * 16 * 32 * 4);  // the activations of one sequence
  EXPECT_EQ(halves[StageId(1)].message_bytes, 0);
}

TEST(Predict, AFasterMachineTakesLess) {
  const Compiled c = compiled({.mesh = {{"pipe", 2}}});
  const Prediction slow = predict(*c.program), fast = predict(*c.program, {.machine = {500e9, 100e9}});
  EXPECT_NEAR(fast.makespan, slow.makespan / 10, 1e-6 * slow.makespan);
  EXPECT_GT(slow.bubble, 0);
  EXPECT_LT(slow.bubble, 0.5);
  const Prediction linked = predict(*c.program, {.link = Link{.latency = slow.makespan}});
  EXPECT_GT(linked.makespan, 2 * slow.makespan);
}

// What comes after the microbatches, and what goes on beside them, is a part of the step.
TEST(Predict, SumsAndUpdatesCount) {
  ModelConfig config{.layers = 2, .width = 32, .heads = 2, .context = 16, .vocab = 64};
  const Compiled c = compile(make_model(complete(config), 8), adamw(), {.microbatches = 2}, {.names = {.data = 2}});
  const Prediction alone = predict(*c.program), linked = predict(*c.program, {.link = Link{.bandwidth = 1e6}});
  const auto has = [](const Prediction& p, Lane lane, std::string_view label) {
    return std::any_of(p.timeline.spans.begin(), p.timeline.spans.end(),
                       [&](const Span& s) { return s.lane == lane && s.label == label; });
  };
  EXPECT_TRUE(has(alone, Lane::compute, "update"));
  EXPECT_TRUE(has(linked, Lane::collective, "sum of gradients of stage 0"));
  EXPECT_FALSE(has(alone, Lane::collective, "sum of gradients of stage 0"));
  EXPECT_NEAR(alone.makespan, alone.timeline.makespan(), 1e-9 * alone.makespan);
  double gradients = 0;
  for (const GradientBucket& b : c.program->step->buckets) gradients += double(b.bytes);
  EXPECT_GT(linked.makespan, alone.makespan + 0.5 * gradients / 1e6);
}

TEST(Predict, RecomputeTakesTimeOfItsOwn) {
  const Compiled keep = compiled({.mesh = {{"pipe", 2}}});
  const Compiled again = compiled({.mesh = {{"pipe", 2}}, .recompute = {Recompute::full}});
  const auto costs = stage_costs(*again.program);
  ASSERT_TRUE(costs[StageId(0)].R);
  EXPECT_GT(*costs[StageId(0)].R, 0);
  EXPECT_LE(*costs[StageId(0)].R, costs[StageId(0)].F);
  EXPECT_GT(predict(*again.program).makespan, predict(*keep.program).makespan);
}

}  // namespace
}  // namespace stretto
