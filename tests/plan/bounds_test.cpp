#include "stretto/plan/inner/bounds.h"

#include <gtest/gtest.h>

#include <random>

#include "plan/problems.h"
#include "stretto/plan/inner/prediction.h"
#include "stretto/plan/space.h"

namespace stretto {
namespace {

TEST(Bounds, AreBelowTheProgram) {
  const PlanProblem p = large_llama(8, 32);
  const Enumerated all = enumerate(p, {});
  Predictor predictor(p);
  const Bounds bounds(p, model_flops(p));
  std::mt19937 random(5);
  for (int i = 0; i < 6; ++i) {
    const RunKeys& k = all.keys[random() % all.keys.size()];
    const Planned x = predictor.by_program(k);
    if (!x.refused.empty()) continue;
    EXPECT_LE(bounds.seconds(k), x.seconds) << k.str();
    EXPECT_LE(bounds.bytes(k), x.bytes) << k.str();
  }
}

TEST(Bounds, StatesAreCutByZero) {
  const PlanProblem p = large_llama(8, 32);
  const Bounds bounds(p, 1e15);
  double before = bounds.bytes({.data = 8});
  for (const int zero : {1, 2, 3}) {
    const double now = bounds.bytes({.data = 8, .zero = zero});
    EXPECT_LT(now, before);
    before = now;
  }
  EXPECT_NEAR(before, parameter_count(p.model) * 18.0 / 8, 1);
}

}  // namespace
}  // namespace stretto
