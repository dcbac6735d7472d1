// What is enumerated is what can be built.
#include "stretto/plan/space.h"

#include <gtest/gtest.h>

#include <set>

#include "plan/problems.h"
#include "stretto/schedule/builders.h"

namespace stretto {
namespace {

TEST(PlanSpace, EveryConfigurationIsLegalAndThereOnce) {
  const PlanProblem p = small_llama(16, 32);
  const Enumerated all = enumerate(p, {});
  EXPECT_GT(all.keys.size(), 1000u);
  std::set<RunKeys> seen;
  for (const RunKeys& k : all.keys) {
    EXPECT_EQ(k.ranks(), 16);
    EXPECT_EQ(mesh_fault(p, k), "");
    EXPECT_EQ(keys_fault(p, k), "");
    EXPECT_TRUE(seen.insert(k).second) << k.str();
  }
}

TEST(PlanSpace, WhatIsGivenIsFixed) {
  const PlanProblem p = small_llama(16, 32);
  for (const RunKeys& k : enumerate(p, {.pipe = {2, 4}, .tensor = {2}, .zero = {1}, .schedules = {"zb-v"}}).keys) {
    EXPECT_TRUE(k.pipe == 2 || k.pipe == 4);
    EXPECT_EQ(k.tensor, 2);
    EXPECT_EQ(k.zero, 1);
    EXPECT_EQ(k.schedule, "zb-v");
    EXPECT_TRUE(k.sequence);
  }
  for (const RunKeys& k : enumerate(p, {.tensor = {2}, .sequence = false}).keys) EXPECT_FALSE(k.sequence);
}

TEST(PlanSpace, MeshesThatCannotBeSayWhy) {
  const PlanProblem p = small_llama(24, 32);
  EXPECT_EQ(mesh_fault(p, {.tensor = 3}), "tensor = 3 does not divide 8 heads");
  EXPECT_EQ(mesh_fault(p, {.data = 3}), "data = 3 does not divide a batch of 32");
  EXPECT_EQ(mesh_fault(p, {.expert = 2}), "expert = 2 and the model has no experts");
  EXPECT_EQ(mesh_fault(p, {.context = 3}), "context = 3 does not divide a context of 256");
  EXPECT_EQ(mesh_fault(p, {.pipe = 99}), "pipe = 99 is more than the model's 18 pieces");
}

TEST(PlanSpace, DivisorsAscend) {
  EXPECT_EQ(divisors(12), (std::vector{1, 2, 3, 4, 6, 12}));
  EXPECT_EQ(divisors(1), std::vector{1});
  EXPECT_EQ(divisors(49), (std::vector{1, 7, 49}));
}

}  // namespace
}  // namespace stretto
