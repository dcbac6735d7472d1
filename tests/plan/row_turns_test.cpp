#include "stretto/plan/row_turns.h"

#include <gmock/gmock.h>

#include "plan/by_hand.h"

namespace stretto {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Rows by hand, of one stage per actor unless told otherwise.
Schedule rows_by_hand(const std::vector<Row>& rows, const std::vector<std::vector<int>>& places, int microbatches = 4) {
  Schedule s;
  s.stages = places[0].size(), s.microbatches = microbatches;
  s.actor_of = placement(places);
  for (const Row& r : rows) s.rows.push_back(r);
  return s;
}
// "F0.1": stage 0, the second microbatch of the turn.
std::vector<std::string> written(const std::vector<RowTurn>& turns) {
  std::vector<std::string> all;
  for (const RowTurn& t : turns) {
    std::string line;
    for (const TurnAction& a : t.key.actions) {
      if (!line.empty()) line += ' ';
      line += letter(a.phase) + std::to_string(a.stage.value) + '.' + std::to_string(a.microbatch);
    }
    all.push_back(line);
  }
  return all;
}
const test::NumberedStages& four_stages() {
  static const test::NumberedStages all({2, 2, 2, 2});
  return all;
}
std::vector<RowTurn> turns_of_row(const Row& row, const TurnOptions& o = {}, bool pairs = false) {
  return turns_of(rows_by_hand({row}, {{0, 0, 0, 0}}), ActorId(0), four_stages().stages, o, pairs);
}

TEST(RowTurns, AWeightGradientJoinsTheTurnBeforeIt) {
  EXPECT_THAT(written(turns_of_row(Row().F(0, 2).I(0, 2).W(0, 2).W(0, 1).F(0, 3))),
              ElementsAre("F0.0", "I0.0 W0.0 W0.1", "F0.0"));
}

TEST(RowTurns, AnOverlapGroupIsATurn) {
  Row row = Row().F(0, 0).F(0, 1).B(1, 0).B(1, 1);
  row[1].overlap = row[2].overlap = 3;
  EXPECT_THAT(written(turns_of_row(row)), ElementsAre("F0.0", "F0.0 B1.1", "B1.0"));
}

TEST(RowTurns, PairsAreOfTwoMicrobatchesThatRecomputeNothing) {
  const Row row = Row().F(0, 0).F(0, 1).F(0, 2).F(1, 2).I(1, 0).W(1, 0).B(1, 1).B(1, 2);
  EXPECT_THAT(written(turns_of_row(row, {}, true)), ElementsAre("F0.0 F0.1", "F0.0", "F1.0", "I1.0 W1.0 B1.1", "B1.0"))
      << "two of one microbatch wait for each other";
  const std::vector<RowTurn> alone =
      turns_of_row(row, {.recompute = IdVector<StageId, Recompute>(4, Recompute::full)}, true);
  EXPECT_THAT(written(alone), ElementsAre("F0.0", "F0.0", "F0.0", "F1.0", "I1.0 W1.0", "B1.0", "B1.0"));
  std::vector<int> turns;
  const RowTurn backwards = turns_of_row(row, {}, true)[3];
  for (const TurnAction& a : backwards.key.actions) turns.push_back(a.turn);
  EXPECT_THAT(turns, ElementsAre(0, 0, 1));
}

// A V: the second and the third stage are neighbours on one actor.
TEST(RowTurns, MessagesGoBetweenDifferentActors) {
  const Schedule s = rows_by_hand(
      {Row().F(0, 1).F(3, 1).B(3, 1).B(0, 1), Row().F(1, 1).F(2, 1).B(2, 1).I(1, 1).W(1, 1)}, {{0, 1, 1, 0}});
  const auto first = turns_of(s, ActorId(0), four_stages().stages, {}, false);
  const auto second = turns_of(s, ActorId(1), four_stages().stages, {}, false);
  std::vector<std::string> all;
  for (const RowTurn& t : second) {
    const TurnAction& a = t.key.actions[0];
    all.push_back(std::string(a.receives ? "receives" : "-") + (a.sends ? " sends" : " -"));
    EXPECT_EQ(a.receives, t.messages[0].in.has_value());
    EXPECT_EQ(a.sends, t.messages[0].out.has_value());
  }
  EXPECT_THAT(all, ElementsAre("receives -", "- sends", "receives -", "- sends"));
  EXPECT_FALSE(second[3].messages[1].in || second[3].messages[1].out) << "a W has none";
  EXPECT_FALSE(first[0].messages[0].in || first[3].messages[0].out) << "nothing comes before the first stage";
  EXPECT_EQ(first[0].messages[0].out->to, ActorId(1));
  EXPECT_EQ(first[0].messages[0].out->message, second[0].messages[0].in);
  EXPECT_EQ(second[1].messages[0].out->message, first[1].messages[0].in);
  EXPECT_EQ(first[2].messages[0].out->message, second[2].messages[0].in);
  EXPECT_EQ(second[3].messages[0].out->message, first[3].messages[0].in);
  EXPECT_NE(first[0].messages[0].out->message, second[3].messages[0].out->message) << "up and down";
  EXPECT_LT(second[3].messages[0].out->message.value, message_count(s));
}

// An embedding has nothing to hand on in backward.
TEST(RowTurns, AStageWithoutAnIReceivesForItsWeightGradients) {
  test::NumberedStages two({1, 2});
  two.works.front()[Part::I].calls.clear();
  const Schedule s = rows_by_hand({Row().F(0, 1).I(0, 1).W(0, 1), Row().F(1, 1).I(1, 1).W(1, 1)}, {{0, 1}});
  const RowTurn first = turns_of(s, ActorId(0), two.stages, {}, false).back();
  const RowTurn second = turns_of(s, ActorId(1), two.stages, {}, false).back();
  EXPECT_FALSE(first.messages[0].in) << "its I";
  EXPECT_EQ(first.messages[1].in, second.messages[0].out->message);
  EXPECT_TRUE(first.key.actions[1].receives);
  EXPECT_FALSE(second.messages[1].in);
}

TEST(RowTurns, TheLastWeightGradientsOfAStageCompleteIt) {
  test::NumberedStages two({1, 1});
  for (const StageId s : two.stages.ids()) two.stages[s][0].sums = 1;
  const Row row = Row().B(1, 0).B(0, 0).B(1, 1).I(0, 1).W(0, 1);
  const auto completes = [&](const std::vector<std::vector<int>>& places) {
    std::vector<std::string> all;
    for (const RowTurn& t : turns_of(rows_by_hand({row, {}}, places), ActorId(0), two.stages, {}, false))
      for (const TurnAction& a : t.key.actions)
        if (a.completes)
          all.push_back(letter(a.phase) + std::to_string(a.stage.value) + (a.alternates ? " alternates" : ""));
    return all;
  };
  EXPECT_THAT(completes({{0, 0}}), ElementsAre("B1 alternates", "W0 alternates"));
  EXPECT_THAT(completes({{1, 0}}), ElementsAre("B1", "W0 alternates")) << "another actor waits for its input gradients";
  two.stages[StageId(0)][0].sums = two.stages[StageId(1)][0].sums = 0;
  EXPECT_THAT(completes({{0, 0}}), IsEmpty()) << "nothing to sum";
}

TEST(RowTurns, TurnsKnowWhoseParametersAreWholeAndWhoseComeNext) {
  const std::vector<RowTurn> turns = turns_of_row(Row().F(0, 0).F(1, 0).B(1, 0).B(0, 0), {.gathers = true});
  const auto at = [](int stage, int piece) { return PieceAt{StageId(stage), piece}; };
  EXPECT_EQ(turns[0].key.visited, std::nullopt);
  EXPECT_EQ(turns[1].key.visited, at(0, 1));
  EXPECT_EQ(turns[2].key.visited, at(1, 1));
  EXPECT_EQ(turns[3].key.visited, at(1, 0));
  EXPECT_EQ(turns[0].key.next, (PieceVisit{at(1, 0), false}));
  EXPECT_EQ(turns[1].key.next, (PieceVisit{at(1, 0), true})) << "its last piece is whole already";
  EXPECT_EQ(turns[2].key.next, (PieceVisit{at(0, 1), true}));
  EXPECT_EQ(turns[3].key.next, std::nullopt);
}

TEST(RowTurns, TheLastGradientsOfATurnAreAddedUpByALaterOne) {
  const std::vector<RowTurn> turns = turns_of_row(Row().B(1, 0).F(0, 1).I(0, 0).W(0, 0).F(0, 2), {.scatters = true});
  std::vector<std::optional<PieceAt>> all;
  for (const RowTurn& t : turns) all.push_back(t.key.scattered);
  EXPECT_THAT(all, ElementsAre(std::nullopt, PieceAt{StageId(1), 0}, PieceAt{StageId(1), 0}, PieceAt{StageId(0), 0}));
}

}  // namespace
}  // namespace stretto
