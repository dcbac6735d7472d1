// What a plan says about itself, of plans that are written by hand; and where time goes, against the program.
#include "stretto/plan/explain.h"

#include <gmock/gmock.h>

#include "plan/problems.h"

namespace stretto {
namespace {

using testing::HasSubstr;
using testing::Not;

Planned planned(RunKeys keys, Spent time, Exactness exact = Exactness::program) {
  return {.keys = std::move(keys), .seconds = time.busy() + time.bubble, .bytes = 40e9, .time = time, .exact = exact};
}

Plan plan_with(std::vector<Alternative> others) {
  Plan plan{.best = {planned({.pipe = 4, .data = 2}, {.products = 8, .collectives = 1, .bubble = 1})},
            .others = std::move(others),
            .capacity = 80e9};
  return plan;
}

TEST(WhyNot, NamesWhatTakesLonger) {
  const RunKeys keys{.pipe = 8};
  const auto says = [&](const Spent& time) { return why_not(plan_with({{"pipe", "8", planned(keys, time)}})).at(0); };
  EXPECT_EQ(says({.products = 8, .collectives = 1, .bubble = 3}), "pipe=8: +20%, the bubble is 3.0 s instead of 1.0 s");
  EXPECT_EQ(says({.products = 9, .attention = 2, .collectives = 1, .bubble = 1}),
            "pipe=8: +30%, kernels take 11.0 s instead of 8.0 s");
  EXPECT_THAT(says({.products = 7, .collectives = 6}), HasSubstr("collectives take 6.0 s instead of 1.0 s"));
  EXPECT_THAT(says({.products = 8, .sums = 4, .bubble = 1}), HasSubstr("sums of gradients take 4.0 s instead of none"));
  EXPECT_EQ(says({.products = 9, .bubble = 1}), "pipe=8: as fast, 40.0 GB");
}

// A schedule that was only played does not tell these apart.
TEST(WhyNot, WaitsWithCutStorageAreOfBothKinds) {
  const Spent time{.products = 8, .bubble = 4};
  const auto says = [&](Exactness exact) {
    return why_not(plan_with({{"zero", "3", planned({.pipe = 4, .data = 2, .zero = 3}, time, exact)}})).at(0);
  };
  EXPECT_THAT(says(Exactness::schedule), HasSubstr("waits for actors and gathers take 4.0 s"));
  EXPECT_THAT(says(Exactness::program), HasSubstr("the bubble is 4.0 s"));
}

TEST(WhyNot, ValuesOfOneConfigurationStandTogether) {
  const Planned other = planned({.data = 8, .zero = 3}, {.products = 12}),
                third = planned({.pipe = 8}, {.products = 13});
  EXPECT_THAT(why_not(plan_with({{"pipe", "1", other}, {"pipe", "8", third}, {"zero", "3", other}})),
              testing::ElementsAre("pipe=1 zero=3: +20%, kernels take 12.0 s instead of 8.0 s",
                                   "pipe=8: +30%, kernels take 13.0 s instead of 8.0 s"));
}

TEST(LimitOf, TheLargestThree) {
  const Planned x = planned({}, {.products = 6, .elements = 1, .collectives = 2, .messages = 0.5, .bubble = 0.5});
  EXPECT_EQ(limit_of(x), "products 60%, collectives 20%, elements 10%");
  EXPECT_THAT(limit_of(planned({}, {.products = 99, .update = 1})), Not(HasSubstr("update")));
}

double kernels(const Planned& x) { return x.time.products + x.time.attention + x.time.elements; }

// Kernels take as long at every depth, and all parts together are the step.
TEST(Planned, SaysWhereTimeGoesAtEveryDepth) {
  const PlanProblem p = large_llama(32, 128);
  Predictor predictor(p);
  for (const RunKeys& k : {RunKeys{.pipe = 4, .data = 2, .tensor = 4, .sequence = true, .microbatches = 16},
                           RunKeys{.data = 32, .zero = 3, .microbatches = 2},
                           RunKeys{.pipe = 2,
                           .data = 4,
                           .tensor = 4,
                           .sequence = true,
                           .zero = 1,
                           .schedule = "zb-v",
                           .chunks = 2,
                           .microbatches = 8,
                           .recompute = Recompute::full}}) {
    const Planned played = predictor.by_schedule(k), exact = predictor.by_program(played.keys);
    for (const Planned& x : {predictor.by_stages(k), played, exact}) {
      const std::string what = fmt::format("{}, by {}", k.str(), name_of(x.exact));
      EXPECT_NEAR((x.time.busy() + x.time.bubble) / x.seconds, 1, 1e-6) << what;
      EXPECT_NEAR(kernels(x) / kernels(exact), 1, 0.07) << what;  // another actor may be the busiest
    }
  }
}

}  // namespace
}  // namespace stretto
