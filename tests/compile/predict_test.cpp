#include "stretto/compile/predict.h"

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
  EXPECT_NEAR(halves[0].F + halves[1].F, whole[0].F, 1e-9 * whole[0].F);
  EXPECT_NEAR(halves[0].I + halves[1].I, whole[0].I, 1e-9 * whole[0].I);
  EXPECT_NEAR(halves[0].W + halves[1].W, whole[0].W, 1e-9 * whole[0].W);
  EXPECT_EQ(halves[0].message_bytes, 1.0 * 16 * 32 * 4);  // the activations of one sequence
  EXPECT_EQ(halves[1].message_bytes, 0);
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

TEST(Predict, RecomputeTakesTimeOfItsOwn) {
  const Compiled keep = compiled({.mesh = {{"pipe", 2}}});
  const Compiled again = compiled({.mesh = {{"pipe", 2}}, .recompute = {Recompute::full}});
  const auto costs = stage_costs(*again.program);
  ASSERT_TRUE(costs[0].R);
  EXPECT_GT(*costs[0].R, 0);
  EXPECT_LE(*costs[0].R, costs[0].F);
  EXPECT_GT(predict(*again.program).makespan, predict(*keep.program).makespan);
}

}  // namespace
}  // namespace stretto
