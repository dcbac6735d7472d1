#include "stretto/plan/inner/facts.h"

#include <gtest/gtest.h>

#include "plan/problems.h"
#include "stretto/plan/inner/prediction.h"

namespace stretto {
namespace {

// Software that keeps all scores of attention holds several times as much as the program plans.
TEST(StageFacts, CountWhatTheStackKeeps) {
  PlanProblem p = large_llama(8, 32);
  const RunKeys k{.pipe = 2, .data = 4, .microbatches = 4};
  const double plain = Predictor(p).by_schedule(k).bytes;
  p.cluster.cluster.stack.kept = true;
  Predictor predictor(p);
  const Planned quick = predictor.by_schedule(k), exact = predictor.by_program(quick.keys);
  EXPECT_GT(quick.bytes, 1.5 * plain);
  EXPECT_NEAR(quick.bytes / exact.bytes, 1, 0.12);
  RunKeys again = k;
  again.recompute = Recompute::full;  // and nothing when all is made again
  EXPECT_LT(predictor.by_schedule(again).bytes, plain);
}

}  // namespace
}  // namespace stretto
