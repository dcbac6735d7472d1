// Plans for models that are data: every configuration by its program, whatever the model is made of.
#include <gtest/gtest.h>

#include "plan/problems.h"
#include "stretto/models/family.h"
#include "stretto/plan/search.h"
#include "support/message.h"

namespace stretto {
namespace {

// A family's model, of which the planner knows no more than of any other.
PlanProblem as_graph(PlanProblem p) {
  p.graph = PlannedGraph{.model = make_model(p.model, p.batch),
                         .name = "gpt2.json",
                         .pieces = p.pieces(),
                         .positions = p.model.context,
                         .parameters = double(parameter_count(p.model))};
  p.model = {};
  return p;
}

PlanProblem small_problem(double memory = 80e9) {
  ModelConfig model;
  model.layers = 2, model.width = 64, model.heads = 4, model.context = 32, model.vocab = 128;
  return {.model = complete(model), .batch = 4, .optimizer = adamw(), .cluster = test_cluster(memory), .ranks = 4};
}

TEST(GraphPlans, FindWhatIsBestAmongAllPrograms) {
  const PlanProblem p = as_graph(small_problem());
  PlanSpace space{.context = {1}, .schedules = {"1f1b", "gpipe"}, .recompute = {Recompute::none}};
  const Plan plan = make_plan(p, space);
  ASSERT_FALSE(plan.best.empty());
  double best = 1e300;
  for (const Planned& x : score(p, enumerate(p, space).keys))
    if (x.refused.empty()) best = std::min(best, x.seconds);
  EXPECT_DOUBLE_EQ(plan.best.front().seconds, best);
  EXPECT_EQ(plan.best.front().exact, Exactness::program);
  EXPECT_GT(plan.flops, 0);
  EXPECT_LT(plan.counts.compiled, plan.counts.tried);
  for (std::size_t i = 1; i < plan.best.size(); ++i) EXPECT_LE(plan.best[i - 1].seconds, plan.best[i].seconds);
  EXPECT_FALSE(plan.others.empty());
}

TEST(GraphPlans, WhatTheCompilerRefusesIsLeftOut) {
  PlanProblem p = as_graph(small_problem());
  p.ranks = 3;  // three divides no head, no width and no batch: a pipeline is left
  const Plan plan = make_plan(p, {});
  ASSERT_FALSE(plan.best.empty());
  for (const Planned& x : plan.best) EXPECT_EQ(x.keys.pipe, 3);
  EXPECT_GT(plan.counts.refused, 0);
  EXPECT_NE(input_refusal_of([&] { make_plan(p, {.pipe = {1}}); }).find("no mesh of 3 ranks can be compiled"),
            std::string::npos);
}

TEST(GraphPlans, RowsThatMeetStayTogether) {
  PlanProblem p = as_graph(small_problem());
  p.graph->one_microbatch = true;
  for (const RunKeys& k : enumerate(p, {}).keys) ASSERT_EQ(k.microbatches, 1);
}

TEST(GraphPlans, NothingFitsIsSaidWithTheNearest) {
  const PlanProblem p = as_graph(small_problem(1e5));
  const Plan plan = make_plan(p, {.context = {1}, .schedules = {"1f1b"}});
  EXPECT_TRUE(plan.best.empty());
  ASSERT_TRUE(plan.nearest);
  EXPECT_GT(plan.nearest->bytes, 1e5);
}

}  // namespace
}  // namespace stretto
