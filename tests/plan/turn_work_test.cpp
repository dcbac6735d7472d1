#include "stretto/plan/turn_work.h"

#include <gmock/gmock.h>

#include "plan/by_hand.h"

namespace stretto {
namespace {

using test::before, test::NumberedStages, test::order_of, test::work_named;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

constexpr TurnAction forward{.phase = Phase::F}, backward{.phase = Phase::B};
TurnOptions that_makes_again(Recompute r) { return {.recompute = {r}}; }

TEST(TurnWork, ForwardGoesUpThePiecesAndBackwardDown) {
  const NumberedStages two({2}, 2);
  const TurnWork up = turn_work({.actions = {forward}}, two.stages, {});
  EXPECT_THAT(order_of(up), ElementsAre("F0", "F0.1", "F1", "F1.1"));
  EXPECT_THAT(before(up, "F1"), UnorderedElementsAre("F0", "F0.1")) << "the task before has begun, and has given";
  EXPECT_THAT(before(up, "F0"), IsEmpty());
  const TurnWork down = turn_work({.actions = {backward}}, two.stages, {});
  EXPECT_THAT(order_of(down), ElementsAre("I1", "I1.1", "I0", "I0.1", "W1", "W1.1", "W0", "W0.1"));
  EXPECT_THAT(before(down, "I0"), UnorderedElementsAre("I1", "I1.1"));
  EXPECT_FALSE(down.talks);
}

TEST(TurnWork, AWeightGradientComesAfterItsOwnInputGradient) {
  const NumberedStages two({2});
  const TurnWork t = turn_work({.actions = {backward}}, two.stages, {});
  EXPECT_THAT(before(t, "W1"), ElementsAre("I1")) << "and not after that of the piece below";
  EXPECT_THAT(before(t, "W0"), UnorderedElementsAre("W1", "I0"));
}

TEST(TurnWork, FullRecomputeMakesAllFirst) {
  NumberedStages two({2}, 2);
  two.works[1][Part::R].at_end = 1;
  const TurnWork t = turn_work({.actions = {{.phase = Phase::I}}}, two.stages, that_makes_again(Recompute::full));
  EXPECT_THAT(order_of(t), ElementsAre("R0", "R0.1", "R1", "I1", "I1.1", "I0", "I0.1"))
      << "the last piece of a stage makes no more than it needs itself";
}

TEST(TurnWork, SelectiveRecomputeStandsBeforeEachInputGradient) {
  const NumberedStages two({2});
  const TurnWork t = turn_work({.actions = {backward}}, two.stages, that_makes_again(Recompute::selective));
  EXPECT_THAT(order_of(t), ElementsAre("R1", "I1", "R0", "I0", "W1", "W0"));
}

TEST(TurnWork, ABackwardCanAlternate) {
  const NumberedStages two({2});
  const TurnKey key{.actions = {{.phase = Phase::B, .alternates = true}}};
  EXPECT_THAT(order_of(turn_work(key, two.stages, {})), ElementsAre("I1", "W1", "I0", "W0"));
  EXPECT_THAT(order_of(turn_work(key, two.stages, that_makes_again(Recompute::layer))),
              ElementsAre("R1", "I1", "W1", "R0", "I0", "W0"));
}

TEST(TurnWork, OnlyTheFirstPieceWaitsForAMessage) {
  const NumberedStages two({2});
  const TurnKey key{.actions = {{.phase = Phase::B, .receives = true}}};
  const TurnWork t = turn_work(key, two.stages, that_makes_again(Recompute::full));
  EXPECT_THAT(order_of(t), ElementsAre("R0", "R1", "receive", "I1", "I0", "W1", "W0"));
  EXPECT_THAT(before(t, "R1"), ElementsAre("R0")) << "what is made again needs none";
  EXPECT_THAT(before(t, "I1"), Contains("receive"));
  EXPECT_THAT(before(t, "I0"), Not(Contains("receive")));
}

// Its gradient may be all that a W reads.
TEST(TurnWork, AWeightGradientByItselfWaitsForTheMessageOfItsInputGradient) {
  NumberedStages two({2});
  two.works[1][Part::W].calls[0] = {.seconds = 410, .chained = true};
  const TurnAction inputs{.phase = Phase::I, .receives = true}, weights{.phase = Phase::W};
  TurnKey key{.actions = {inputs, weights}};
  EXPECT_THAT(before(turn_work(key, two.stages, {}), "W1'"), ElementsAre("receive"));
  key.actions[1].microbatch = 1;  // whose message came long ago
  EXPECT_THAT(before(turn_work(key, two.stages, {}), "W1'"), IsEmpty());
}

// Of an embedding there is no input gradient.
TEST(TurnWork, AWeightGradientWithoutAnInputGradientWaitsForTheMessage) {
  NumberedStages one({1});
  one.works[0][Part::I].calls.clear();
  one.works[0][Part::W].calls[0] = {.seconds = 400, .chained = true};
  const TurnWork t = turn_work({.actions = {{.phase = Phase::B, .receives = true}}}, one.stages, {});
  EXPECT_THAT(order_of(t), ElementsAre("receive", "W0"));
  EXPECT_THAT(before(t, "W0"), ElementsAre("receive"));
}

TEST(TurnWork, AMessageIsSentAfterTheCallThatGives) {
  NumberedStages two({2}, 3);
  two.works[1][Part::F].gives = 1;
  const TurnWork up = turn_work({.actions = {{.phase = Phase::F, .sends = true}}}, two.stages, {});
  EXPECT_THAT(before(up, "send"), ElementsAre("F1.1"));
  EXPECT_TRUE(up.work[work_named(up, "send")].urgent);
  const NumberedStages one({2});
  const TurnWork down = turn_work({.actions = {{.phase = Phase::B, .sends = true}}}, one.stages, {});
  EXPECT_THAT(order_of(down), ElementsAre("I1", "I0", "send", "W1", "W0"));
  EXPECT_THAT(before(down, "send"), ElementsAre("I0"));
}

TEST(TurnWork, WeightGradientsThatWereLeftComeFirst) {
  const NumberedStages two({2});
  const TurnWork t = turn_work({.actions = {backward}, .left = {{StageId(0), 1}, {StageId(0), 0}}}, two.stages, {});
  EXPECT_THAT(order_of(t), ElementsAre("W1", "W0", "I1", "I0", "W1", "W0"));
  EXPECT_THAT(t.work[WorkId(0)].after, IsEmpty()) << "its input gradient was made by the turn before";
  EXPECT_THAT(t.work[WorkId(1)].after, ElementsAre(WorkId(0)));
  EXPECT_LT(t.work[WorkId(1)].turn, t.work[WorkId(2)].turn);
  EXPECT_THAT(t.work[WorkId(4)].after, UnorderedElementsAre(WorkId(0), WorkId(2))) << "into the same accumulator";
  ASSERT_EQ(t.weights.size(), 4u);
  EXPECT_THAT(t.weights[0].waiting, UnorderedElementsAre(WorkId(1), WorkId(4)));
  EXPECT_THAT(t.weights[3].waiting, IsEmpty());
}

}  // namespace
}  // namespace stretto
