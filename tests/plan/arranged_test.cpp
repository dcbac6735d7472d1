// Steps of two actors, with seconds that are added up by hand.
#include "stretto/plan/arranged.h"

#include <gmock/gmock.h>

#include "plan/hand_pipe.h"

namespace stretto {
namespace {

using test::HandPipe, test::HandTimes;
using testing::ElementsAre;

constexpr Arrangement alone{}, in_pairs{.pairs = true};
constexpr std::optional<Arrangement> as_written = std::nullopt;

TEST(ArrangedPlayer, MessagesTakeTheirTimeBetweenActors) {
  HandPipe p({{{.I = 2}}, {{.I = 2}}}, {Row().F(0, 0).F(0, 1).B(0, 0).B(0, 1), Row().F(1, 0).B(1, 0).F(1, 1).B(1, 1)});
  // There: F until 2, I until 4, W until 5, F until 6, I until 8. Here: I from 4 on, W until 7; I from 8 on.
  EXPECT_THAT(p.last(as_written), ElementsAre(11, 9));
  p.link = {.latency = 0.25, .bandwidth = 100}, p.message = 50;
  const PlayedEnds ends = p.ends(as_written);
  EXPECT_THAT(ends.first, ElementsAre(0, 1.75));
  // There: F until 2.75, I until 4.75, W until 5.75, F until 6.75, I until 8.75. Here: I from 5.5 on, W until 8.5; I
  // from 9.5 on.
  EXPECT_THAT(ends.last, ElementsAre(12.5, 9.75));
}

TEST(ArrangedPlayer, MessagesGoOneAfterTheOther) {
  HandPipe p({{{}}, {{}}}, {Row().F(0, 0).F(0, 1), Row().F(1, 0).F(1, 1)});
  p.link = {.latency = 0.25, .bandwidth = 10}, p.message = 30;
  EXPECT_THAT(p.last(as_written), ElementsAre(2, 1 + 3 + 3 + 0.25 + 1));
}

TEST(ArrangedPlayer, WeightGradientsGoOnBesideACollective) {
  const HandPipe p({{{.W = 1.5, .talks_I = 2}}}, {Row().B(0, 0)});
  EXPECT_THAT(p.last(as_written), ElementsAre(1 + 2 + 1 + 1.5));
  EXPECT_THAT(p.last(alone), ElementsAre(1 + 2 + 1));
}

// Nothing stands between its start and its end: it is a call like others, and no wire is asked.
TEST(ArrangedPlayer, ACollectiveInPlaceDoesNotWaitForTheWire) {
  HandPipe p({{{}}}, {Row().F(0, 0)});
  PartWork& F = p.works[0][Part::F];
  F.calls = {{.seconds = 1},
             {.seconds = 3, .link = 0, .after = {{Part::F, 0}}},
             {.seconds = 1, .link = 0, .after = {{Part::F, 0}}},
             {.seconds = 1, .after = {{Part::F, 2}}},
             {.seconds = 1, .after = {{Part::F, 1}, {Part::F, 3}}}};
  EXPECT_THAT(p.last(as_written), ElementsAre(7));
  EXPECT_THAT(p.last(alone), ElementsAre(1 + 3 + 1)) << "two of the three beside the long one";
  F.calls[2].link = 1;
  F.calls[3].after.push_back({Part::F, 1});  // which awaits the long one first
  EXPECT_THAT(p.last(alone), ElementsAre(1 + 3 + 1 + 1));
}

TEST(ArrangedPlayer, PairsOfMicrobatchesFillEachOthersGaps) {
  const HandPipe p({{{.talks_F = 1}}}, {Row().F(0, 0).F(0, 1).F(0, 2).F(0, 3)});
  EXPECT_THAT(p.last(as_written), ElementsAre(4 * 3));
  EXPECT_THAT(p.last(alone), ElementsAre(4 * 3));
  EXPECT_THAT(p.last(in_pairs), ElementsAre(2 * 4));
}

// Backward of the first actor makes two seconds of weight gradients that fill no gap of their own; its forward, for
// which the other one waits, has a gap of two.
HandPipe& with_gap_in_forward() {
  static HandPipe p({{{.talks_F = 2}, {}, {.talks_I = 1}}, {{}}}, {Row().B(0, 0).F(0, 1), Row().I(1, 0).F(1, 1)});
  return p;
}

TEST(ArrangedPlayer, WeightGradientsAreLeftToATurnThatWaits) {
  const HandPipe& p = with_gap_in_forward();
  const double backward = 1 + (1 + 1 + 1) + 1 + 1, forward = (1 + 2 + 1) + 1 + 1;
  EXPECT_THAT(p.last(as_written), ElementsAre(backward + 3 + forward, backward + 3 + forward + 1));
  EXPECT_THAT(p.last(alone), ElementsAre(backward + 2 + forward, backward + 2 + forward + 1));
  EXPECT_THAT(p.last(Arrangement{.weights = 8}), ElementsAre(backward + forward, backward + forward + 1));
}

TEST(ArrangedPlayer, NoMoreWeightGradientsAreLeftThanAllowed) {
  const HandPipe& p = with_gap_in_forward();
  ArrangedPlayer player = p.player();
  const double best = p.last(Arrangement{.weights = 8})[1];
  EXPECT_EQ(player.ends(p.schedule, Arrangement{.weights = 1}).last[1], best + 1);
  EXPECT_EQ(player.ends(p.schedule, Arrangement{.weights = 8}).last[1], best) << "whatever it was asked before";
}

// Gathers take 3.5 seconds, scatters 2, additions half a second.
TEST(ArrangedPlayer, GathersAndScattersShareAWire) {
  const HandTimes times{.A = 0.5};
  HandPipe p({{times, times}}, {Row().F(0, 0).B(0, 0)});
  for (StagePiece& x : p.stages[StageId(0)]) x.gather = x.gather_back = 3.5, x.scatter = 2;
  p.options.gathers = true;
  // Wire: 0 to 3.5, to 7, to 10.5. F at 3.5, and at 7; I at 8, and at 10.5; then both W.
  EXPECT_THAT(p.last(as_written), ElementsAre(11.5 + 2));
  p.options.scatters = true;
  // The first until 14.5, added up until 15, then the second until 17.
  EXPECT_THAT(p.last(as_written), ElementsAre(17.5));
  p.schedule.rows[0].F(0, 1);
  // The second piece is gathered for it from 10.5 to 14, so that the first scatter ends at 16 and the second at 18.5.
  // Forward itself goes on beside that, from 16.5 on.
  EXPECT_THAT(p.last(as_written), ElementsAre(18.5 + 0.5));
}

TEST(ArrangedPlayer, SumsGoOnAfterTheLastAction) {
  HandPipe p({{{}, {}}}, {Row().B(0, 0)});
  for (StagePiece& x : p.stages[StageId(0)]) x.sums = 3;
  EXPECT_THAT(p.ends(as_written).last, ElementsAre(4));
  EXPECT_THAT(p.ends(as_written).summed, ElementsAre(2 + 3 + 3)) << "from the first W on";
}

TEST(ArrangedPlayer, IsTheSameWhateverItWasAskedBefore) {
  const HandPipe& p = with_gap_in_forward();
  ArrangedPlayer asked = p.player();
  const std::vector<std::optional<Arrangement>> ways{as_written,
                                                     alone,
                                                     in_pairs,
                                                     Arrangement{.weights = 8},
                                                     Arrangement{.late = false},
                                                     Arrangement{.unhurried = true}};
  for (int again = 0; again < 2; ++again)
    for (const auto& way : ways) EXPECT_EQ(asked.ends(p.schedule, way).last, p.last(way));
}

}  // namespace
}  // namespace stretto
