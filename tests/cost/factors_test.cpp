#include "stretto/cost/factors.h"

#include <gtest/gtest.h>

namespace stretto {
namespace {

TEST(StackFactors, AStackThatSaysNothingChangesNothing) {
  const StackFactors f = factors_of(Cluster{.ranks_per_node = 8}, 64);
  for (const double factor : {f.all, f.gradients, f.tensor, f.exchanges, f.messages, f.passes, f.update})
    EXPECT_EQ(factor, 1);
  EXPECT_EQ(f.issue, 0);
  EXPECT_EQ(f.loss, 0);
  EXPECT_FALSE(f.full || f.selective || f.sender_waits);
}

TEST(StackFactors, WhatIsHiddenIsNotWaitedForAndSlowsItsNeighbours) {
  Cluster c;
  c.stack.hidden = {.tensor = 0.75, .messages = 0.5};
  c.stack.beside = 0.2;
  EXPECT_DOUBLE_EQ(factors_of(c, 1).tensor, 0.25 + 0.75 * 0.2);
  EXPECT_DOUBLE_EQ(factors_of(c, 1).exchanges, 0.25 + 0.75 * 0.2);  // as what tensor ranks gather, unless it says more
  EXPECT_DOUBLE_EQ(factors_of(c, 1).messages, 0.5);
  EXPECT_TRUE(factors_of(c, 1).sender_waits);
  c.stack.hidden.exchanges = 0;
  EXPECT_DOUBLE_EQ(factors_of(c, 1).exchanges, 1);
}

TEST(StackFactors, StepsGrowWithEveryDoublingOfTheNodes) {
  Cluster c{.ranks_per_node = 8};
  c.stack.factor = 1.5, c.stack.growth = 0.1, c.stack.floor = 4e-3;
  EXPECT_DOUBLE_EQ(factors_of(c, 4).all, 1.5);
  EXPECT_DOUBLE_EQ(factors_of(c, 64).all, 1.5 * 1.3);
  EXPECT_DOUBLE_EQ(factors_of(c, 64).issue, 2e-3 * 1.5 * 1.3);
}

TEST(StackFactors, RecomputeIsAPartOfForward) {
  Cluster c;
  c.stack.selective = Stack::Selective::products;
  EXPECT_EQ(factors_of(c, 1).selective->products, 0.5);
  EXPECT_EQ(factors_of(c, 1).selective->attention, 0);
  EXPECT_FALSE(factors_of(c, 1).full);
  c.stack.whole_layers = true;
  EXPECT_EQ(factors_of(c, 1).full->collectives, 1);
}

}  // namespace
}  // namespace stretto
