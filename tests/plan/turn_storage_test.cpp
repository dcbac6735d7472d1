// What cut parameters and gradients have beside the calls of a turn: gathers, scatters and sums.
#include <gmock/gmock.h>

#include "plan/by_hand.h"
#include "stretto/plan/turn_work.h"

namespace stretto {
namespace {

using test::before, test::NumberedStages, test::order_of, test::work_named;
using testing::Contains;
using testing::ElementsAre;
using testing::Not;
using testing::UnorderedElementsAre;

constexpr TurnAction weights_too{.phase = Phase::B};

TEST(TurnStorage, PiecesAreGatheredWhileTheOneBeforeWorks) {
  const NumberedStages two({2});
  const TurnOptions cut{.gathers = true};
  const PieceVisit next{.at = {StageId(0), 0}, .back = true};
  const TurnKey key{.actions = {{.phase = Phase::F}}, .next = next};
  EXPECT_THAT(visits_of(key, two.stages, cut),
              ElementsAre(PieceVisit{{StageId(0), 0}, false}, PieceVisit{{StageId(0), 1}, false}));
  const TurnWork t = turn_work(key, two.stages, cut);
  EXPECT_THAT(order_of(t), ElementsAre("gather1", "F0", "back0", "F1"));
  EXPECT_TRUE(t.items[work_named(t, "F0")].of_gather) << "the turn before has started it";
  EXPECT_FALSE(t.items[work_named(t, "F1")].of_gather);
  EXPECT_THAT(before(t, "F1"), UnorderedElementsAre("F0", "gather1"));
  EXPECT_THAT(before(t, "back0"), ElementsAre("F0"));
  EXPECT_EQ(t.gather, work_named(t, "back0"));
  EXPECT_EQ(t.visited, (PieceAt{StageId(0), 1}));
  const TurnWork down = turn_work({.actions = {weights_too}, .visited = t.visited}, two.stages, cut);
  EXPECT_THAT(order_of(down), ElementsAre("I1", "I0", "W1", "W0")) << "nothing comes after the last";
  EXPECT_TRUE(down.items[work_named(down, "I0")].of_gather);
  EXPECT_FALSE(down.items[work_named(down, "I1")].of_gather) << "whole since forward";
}

TEST(TurnStorage, WholeGradientsOfTwoPiecesExistAtATime) {
  NumberedStages three({3});
  for (PieceWork& work : three.works) {  // of two gradients
    PieceCall second = work[Part::A].calls[0];
    ++second.seconds;
    work[Part::A].calls.push_back(second);
  }
  const TurnWork t =
      turn_work({.actions = {weights_too}, .scattered = PieceAt{StageId(0), 0}}, three.stages, {.scatters = true});
  EXPECT_THAT(order_of(t), ElementsAre("I2", "I1", "I0", "W2", "A0", "A0.1", "scatter2", "W1", "A2", "A2.1", "scatter1",
                                       "W0", "A1", "A1.1"));
  EXPECT_TRUE(t.items[work_named(t, "A0")].of_scatter) << "those of the turn before";
  EXPECT_FALSE(t.items[work_named(t, "A2")].of_scatter);
  EXPECT_THAT(before(t, "A2"), Contains("scatter2"));
  EXPECT_THAT(before(t, "W1"), UnorderedElementsAre("A0", "A0.1", "I1"));
  EXPECT_THAT(before(t, "W0"), Contains("A2.1"));
  EXPECT_THAT(before(t, "W0"), Not(Contains("A1")));
  EXPECT_EQ(t.last_scatter, three.stages[StageId(0)][0].scatter) << "starts when the turn is over";
  EXPECT_FALSE(t.scatter);
  EXPECT_EQ(t.scattered, (PieceAt{StageId(0), 0})) << "added up by the next turn";
}

TEST(TurnStorage, CompleteGradientsAreSummedPieceByPiece) {
  NumberedStages two({2}, 2);
  for (StagePiece& p : two.stages[StageId(0)]) p.sums = 8;
  const TurnAction weights{.phase = Phase::W}, last{.phase = Phase::W, .microbatch = 1, .completes = true};
  EXPECT_THAT(order_of(turn_work({.actions = {weights, weights}}, two.stages, {})),
              ElementsAre("W1", "W1.1", "W0", "W0.1", "W1'", "W1.1'", "W0'", "W0.1'"));
  const TurnWork t = turn_work({.actions = {weights, last}}, two.stages, {});
  EXPECT_THAT(order_of(t), ElementsAre("W1", "W1.1", "W1'", "W1.1'", "sum'", "sum'",  //
                                       "W0", "W0.1", "W0'", "W0.1'"));
  EXPECT_THAT(before(t, "sum'"), ElementsAre("W1.1'")) << "each after the call that makes it";
  EXPECT_EQ(t.last_sums, 8) << "those of the last piece start when the turn is over";
}

}  // namespace
}  // namespace stretto
