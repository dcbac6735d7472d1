// Recompute that differs from stage to stage is chosen where it is faster, by its program.
#include "stretto/plan/inner/mixed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/problems.h"
#include "stretto/plan/search.h"

namespace stretto {
namespace {

const PlanSpace one_mesh{.pipe = {4},
                         .data = {2},
                         .tensor = {1},
                         .context = {1},
                         .zero = {1},
                         .chunks = {1},
                         .microbatches = {16},
                         .schedules = {"1f1b"}};

// One configuration by its program, with one recompute for all stages or with one for each.
Planned with(const PlanProblem& p, std::vector<Recompute> recompute) {
  RunKeys k = enumerate(p, one_mesh).keys.front();
  k.set_recompute(std::move(recompute));
  return compiled_plan(p, k);
}

// Nothing fits that makes little again in all stages.
PlanProblem tight() {
  PlanProblem p = large_llama(8, 32);
  const double most = with(p, {Recompute::none}).bytes, least = with(p, {Recompute::layer}).bytes;
  p.cluster.memory = least + 0.2 * (most - least);
  return p;
}

TEST(MixedRecompute, IsChosenWhereOnlyTheFullestHaveTo) {
  const PlanProblem p = tight();
  double uniform = 1e30;
  for (const Recompute r : by_what_is_kept)
    if (const Planned x = with(p, {r}); x.bytes <= p.cluster.memory) uniform = std::min(uniform, x.seconds);
  const Planned best = make_plan(p, one_mesh).best.at(0);
  EXPECT_EQ(best.exact, Exactness::program);
  EXPECT_EQ(best.keys.recompute_each.size(), 4u) << best.keys.str();
  EXPECT_LE(best.bytes, p.cluster.memory);
  EXPECT_LT(best.seconds, 0.9 * uniform);
  EXPECT_EQ(compiled_plan(p, best.keys).seconds, best.seconds) << "with these very keys";
  EXPECT_NE(make_plan(p, one_mesh, {.quick = true}).best.at(0).keys.recompute_each.size(), 0u);
}

TEST(MixedRecompute, IsNotWhatWasFixed) {
  PlanSpace fixed = one_mesh;
  fixed.recompute = {Recompute::full};
  for (const Planned& x : make_plan(tight(), fixed).best) EXPECT_EQ(x.keys.recompute_str(), "full");
  fixed.recompute = {Recompute::none, Recompute::full};
  EXPECT_THAT(make_plan(tight(), fixed).best.at(0).keys.recompute_str(), testing::StartsWith("full"));
}

TEST(MixedRecompute, StagesAreWhatProgramsAre) {
  const PlanProblem p = large_llama(8, 32);
  Predictor predictor(p);
  for (const int zero : {0, 3}) {
    RunKeys k = enumerate(p, one_mesh).keys.front();
    k.zero = zero;
    k.set_recompute({Recompute::full, Recompute::layer, Recompute::selective, Recompute::none});
    const Planned quick = predictor.by_schedule(k), exact = predictor.by_program(quick.keys);
    ASSERT_EQ(exact.refused, "");
    EXPECT_NEAR(quick.seconds / exact.seconds, 1, 0.02) << zero;
    EXPECT_NEAR(quick.bytes / exact.bytes, 1, zero == 0 ? 0.1 : 0.35) << zero;
  }
}

TEST(RunKeys, RecomputeOfStagesInWords) {
  RunKeys k{.pipe = 4};
  k.set_recompute({Recompute::full, Recompute::full, Recompute::none, Recompute::none});
  EXPECT_EQ(k.recompute_str(), "full*2,none*2");
  EXPECT_EQ(k.recompute, Recompute::full);
  EXPECT_THAT(k.str(), testing::HasSubstr("recompute full in 2 of 4 stages"));
  k.set_recompute({Recompute::layer, Recompute::layer});
  EXPECT_EQ(k.recompute_str(), "layer");
  EXPECT_EQ(k.recompute_list(), std::vector{Recompute::layer});
}

}  // namespace
}  // namespace stretto
