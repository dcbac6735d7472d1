#include "stretto/schedule/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "schedule/given.h"
#include "stretto/schedule/csv.h"

namespace stretto {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Kind = Finding::Kind;

Schedule csv(const std::string& text, CsvOptions o = {}) { return schedule_of(parse_csv(text, "f"), o); }

// Two stages, two microbatches, no fault.
Schedule small() { return csv("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"); }

std::vector<Kind> kinds(const Validation& v) {
  std::vector<Kind> k;
  for (const Finding& f : v.faults) k.push_back(f.kind);
  return k;
}

Schedule one_f_one_b(int p, int m) {
  Schedule s = looped({.actors = p, .microbatches = m});
  for (int a = 0; a < p; ++a) {
    int f = 0, b = 0;
    while (f < std::min(p - a - 1, m)) s.rows[a].F(a, f++);
    while (f < m) s.rows[a].F(a, f++).B(a, b++);
    while (b < m) s.rows[a].B(a, b++);
  }
  return s;
}

TEST(Validate, GivenSchedulesHaveNoFaultAndTheirPeak) {
  EXPECT_EQ(validate(small()).str(), "");
  const Validation dual_v = validate(given("dualpipev_4rank_10mb.csv"));
  EXPECT_EQ(dual_v.str(), "");
  EXPECT_THAT(dual_v.peak, ElementsAre(4.5, 4.5, 4.5, 4.5));
  EXPECT_TRUE(validate(given("zb1p_2rank_2stagep_compute.csv")).ok());
  EXPECT_TRUE(validate(given("zb1p_2rank_2stagep_comms.csv")).ok());
  EXPECT_THAT(validate(given("zb-v_p4_m8.csv")).peak, ElementsAre(4, 4, 4, 4));
  EXPECT_THAT(validate(given("v-half_p4_m8.csv")).peak, ElementsAre(3, 3, 3, 3));
  EXPECT_THAT(validate(given("dualpipe_p4_m8.csv", CsvPipes::logical)).peak, ElementsAre(5, 5, 5, 5));
  const Validation chimera = validate(given("chimera_p4_m4.csv", CsvPipes::logical));
  EXPECT_TRUE(chimera.ok()) << chimera.str();
  EXPECT_THAT(chimera.peak, ElementsAre(3, 4, 4, 3));
  EXPECT_THAT(validate(one_f_one_b(4, 8)).peak, ElementsAre(4, 3, 2, 1));
  for (int p = 1; p <= 5; ++p) {
    for (int m = 1; m <= 7; ++m) EXPECT_EQ(validate(one_f_one_b(p, m)).str(), "") << p << " " << m;
  }
}

TEST(Validate, WrongNumberOfRows) {
  EXPECT_EQ(validate(small(), {.actors = 2, .stages = 2, .microbatches = 2}).str(), "");
  EXPECT_THAT(validate(small(), {.actors = 4}).str(), HasSubstr("[rows] 2 rows for 4 actors; hint: "));
  EXPECT_THAT(validate(small(), {.stages = 4}).str(), HasSubstr("2 stages, 4 were asked for"));
  EXPECT_THAT(validate(small(), {.microbatches = 4}).str(), HasSubstr("2 microbatches, 4 were asked for"));
}

TEST(Validate, BrokenShapesAreRefusedNotRead) {
  EXPECT_THAT(kinds(validate(Schedule{})), testing::Contains(Kind::shape));
  Schedule s = small();
  s.actor_of[down_pipe][StageId(1)] = ActorId(7);
  EXPECT_THAT(validate(s).str(), HasSubstr("[stage 1] the stage is placed on actor 7, there are 2 rows"));
  s = small();
  s.actor_of[down_pipe].pop_back();
  EXPECT_FALSE(validate(s).ok());
  s = small();
  s.actor_of.resize(3);
  EXPECT_FALSE(validate(s).ok());
  s = small();
  s.microbatches = 2000000000;
  EXPECT_THAT(validate(s).str(), HasSubstr("need at least 8000000000 actions, there are 8"));
  s = small();
  s.rows[0][0].phase = Phase(9);
  EXPECT_THAT(validate(s).str(), HasSubstr("0?0] the action is of no known phase"));
}

TEST(Validate, UnknownStageMicrobatchPieceAndPipe) {
  const Validation v = validate(csv("0F0,0F1,0F9,0B0,0B1\n1F0,1B0,1F1,1B1,5B1\n", {.stages = 2, .microbatches = 2}));
  EXPECT_THAT(kinds(v), ElementsAre(Kind::unknown, Kind::unknown));
  EXPECT_EQ(v.faults[0].fault.where, "actor 0, position 2, 0F9");
  EXPECT_THAT(v.str(), HasSubstr("[actor 0, position 2, 0F9] there is no microbatch 9, the last is 1; hint: "));
  EXPECT_THAT(v.str(), HasSubstr("[actor 1, position 4, 5B1] there is no stage 5, the last is 1; hint: "));
  Schedule s = small();
  s.rows[0][1].segment = 3;
  EXPECT_THAT(validate(s).str(), HasSubstr("no sequence segment 3"));
  s = small();
  s.rows[0][1].pipe = up_pipe;
  EXPECT_THAT(validate(s).str(), HasSubstr("no pipe 1"));
  s = given("chimera_p4_m4.csv", CsvPipes::logical);
  s.rows[0][2].microbatch = MicrobatchId(1);
  EXPECT_THAT(validate(s).str(), HasSubstr("[actor 0, position 2, 7F1] microbatch 1 goes through the down pipe"));
}

TEST(Validate, MissingAndTwice) {
  Validation v = validate(csv("0F0,0F1,0B0,0B1\n1F0,1B0,1F1\n"));
  EXPECT_EQ(v.str(),
            "[actor 1, position 3, 1B1] 1B1 is missing (and there is no I with a W either); hint: add it after 1F1 "
            "(position 2)\n");
  v = validate(csv("0F0,0B0,0B1\n1F0,1B0,1F1,1B1\n"));
  EXPECT_EQ(v.str(), "[actor 0, position 2, 0F1] 0F1 is missing; hint: add it before 0B1 (position 2)\n");
  v = validate(csv("0F0,0B0\n1F0,1B0,1F1,1B1\n"));
  EXPECT_THAT(kinds(v), ElementsAre(Kind::missing, Kind::missing));
  EXPECT_THAT(v.str(), HasSubstr("[actor 0, position 2, 0F1] 0F1 is missing; hint: add it to actor 0's row"));
  v = validate(csv("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1,1F0\n"));
  EXPECT_EQ(
      v.str(),
      "[actor 1, position 4, 1F0] the action stands twice, first on actor 1 at position 0; hint: delete one of them\n");
  // Neighbours are told together.
  v = validate(one_f_one_b(2, 8), {});
  Schedule s = one_f_one_b(2, 8);
  s.microbatches = 12;
  v = validate(s);
  EXPECT_EQ(v.faults.size(), 4u);
  EXPECT_THAT(v.str(), HasSubstr("[actor 0, position 16, 0F8 to 0F11] 0F8 to 0F11 are missing"));
}

TEST(Validate, HalvesOfTheBackward) {
  EXPECT_THAT(validate(csv("0F0,0I0,0W0,0F1,0I1\n")).str(),
              HasSubstr("[actor 0, position 4, 0I1] the input gradient has no weight gradient; hint: add 0W1"));
  EXPECT_THAT(validate(csv("0F0,0I0,0W0,0F1,0W1\n")).str(),
              HasSubstr("[actor 0, position 4, 0W1] the weight gradient has no input gradient; hint: add 0I1"));
  EXPECT_THAT(validate(csv("0F0,0B0,0I0\n")).str(),
              HasSubstr("[actor 0, position 1, 0B0] the full backward stands beside 0I0 (position 2)"));
  EXPECT_THAT(validate(csv("0F0,0B0,0W0\n")).str(), HasSubstr("the full backward stands beside 0W0"));
  EXPECT_THAT(kinds(validate(csv("0F0,0I0,0B0,0W0\n"))), ElementsAre(Kind::split));
}

TEST(Validate, OrderWithinARow) {
  Validation v = validate(csv("0B0,0F0\n"));
  EXPECT_EQ(v.str(),
            "[actor 0, position 0, 0B0] the backward needs its forward 0F0 (position 1); hint: move it after position "
            "1, or 0F0 before position 0\n");
  EXPECT_THAT(validate(csv("0F0,0W0,0I0\n")).str(),
              HasSubstr("[actor 0, position 1, 0W0] the weight gradient needs its input gradient 0I0 (position 2)"));
  EXPECT_THAT(validate(csv("1F0,0F0,1B0,0B0\n")).str(),
              HasSubstr("[actor 0, position 0, 1F0] the forward needs the stage before it, 0F0 (position 1)"));
  EXPECT_THAT(validate(csv("0F0,1F0,0B0,1B0\n")).str(),
              HasSubstr("[actor 0, position 2, 0B0] the backward needs the stage after it, 1B0 (position 3)"));
  EXPECT_THAT(validate(csv("0F0,0B0,0R0\n")).str(), HasSubstr("the backward needs its recompute"));
  EXPECT_THAT(validate(csv("0R0,0F0,0B0\n")).str(), HasSubstr("the recompute needs its forward"));
  EXPECT_TRUE(validate(csv("0F0,0R0,0I0,0W0\n")).ok());
  EXPECT_TRUE(validate(csv("0F0,0F0.1,0B0.1,0B0\n")).ok());
  EXPECT_THAT(validate(csv("0F0.1,0F0,0B0.1,0B0\n")).str(), HasSubstr("the forward needs the segment before it, 0F0"));
  EXPECT_THAT(validate(csv("0F0,0F0.1,0B0,0B0.1\n")).str(),
              HasSubstr("the backward needs the segment after it, 0B0.1"));
  EXPECT_THAT(validate(csv("0F0,0F0.1,0I0.1,0I0,0W0,0W0.1\n")).str(),
              HasSubstr("the weight gradient is added to that of the segment after it, 0W0.1"));
}

TEST(Validate, ActorThatDoesNotHoldTheStage) {
  const Validation v = validate(csv("0F0,0F1,0B0,0B1,1B1\n1F0,1B0,1F1\n"));
  EXPECT_EQ(v.str(),
            "[actor 0, position 4, 1B1] actor 0 does not hold stage 1, actor 1 does; hint: move it to actor 1's row\n");
}

TEST(Validate, ACycleIsPrintedAsAChain) {
  const Validation v = validate(csv("0F0,0B0,0F1,0B1\n1F1,1F0,1B0,1B1\n"));
  EXPECT_EQ(
      v.str(),
      "[actor 0, position 1, 0B0] dependency cycle: actor 0 waits at 0B0 (position 1) for a message from actor 1 "
      "(1B0, position 2), which waits at 1F1 (position 0) for a message from actor 0 (0F1, position 2), which waits at "
      "0B0; hint: on actor 0 move 0F1 (position 2) before 0B0 (position 1)\n");
}

TEST(Validate, EveryCycleIsFound) {
  const std::string two = "0F0,0B0,0F1,0B1,0F2,0B2,0F3,0B3\n1F1,1F0,1B0,1B1,1F3,1F2,1B2,1B3\n";
  EXPECT_THAT(kinds(validate(csv(two))), ElementsAre(Kind::cycle, Kind::cycle));
}

TEST(Validate, OverlapGroups) {
  EXPECT_THAT(validate(csv("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n")).str(), "");
  Validation v = validate(csv("(0F0;0B0)OVERLAP_F_B\n"));
  EXPECT_THAT(kinds(v), ElementsAre(Kind::overlap));
  EXPECT_THAT(v.str(), HasSubstr("[actor 0, position 1, 0B0] members of one overlap group depend on each other: the "
                                 "backward needs its forward 0F0"));
  // Through another actor: 0B0 needs 1B0, which needs 1F0, which needs 0F0.
  v = validate(csv("(0F0;0B0)OVERLAP_F_B,0F1,0B1\n1F0,1B0,1F1,1B1\n"));
  EXPECT_THAT(kinds(v), testing::Contains(Kind::overlap));
  v = validate(csv("0F0,(0F1;1F1)OVERLAP_F_B,1F0,1B0,1B1,0B0,0B1\n"));
  EXPECT_THAT(v.str(), HasSubstr("the forward needs the stage before it, 0F1"));
  v = validate(csv("0F0,(0F1;2F1)OVERLAP_F_B,2F0,2B0,2B1,0B0,0B1\n1F0,1F1,1B0,1B1\n"));
  EXPECT_THAT(kinds(v), ElementsAre(Kind::overlap));
  EXPECT_THAT(v.str(), HasSubstr("take 0F1 (position 1) out of its group"));
  Schedule s = csv("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n");
  s.rows[0][3].overlap = 1;
  s.rows[0][2].overlap = 0;
  EXPECT_THAT(validate(s).str(), HasSubstr("do not stand side by side"));
}

TEST(Validate, MemoryCap) {
  EXPECT_TRUE(validate(one_f_one_b(4, 8), {.memory = 4}).ok());
  const Validation v = validate(one_f_one_b(4, 8), {.memory = 2});
  EXPECT_THAT(kinds(v), ElementsAre(Kind::memory, Kind::memory));
  EXPECT_THAT(v.str(), HasSubstr("[actor 0, position 2, 0F2] 3 full-stage activations are live, the cap is 2; hint: "));
  EXPECT_THAT(v.str(), HasSubstr("[actor 1, position 2, 1F2]"));
}

TEST(Validate, NotesAreNoFaults) {
  const Validation v = validate(csv("0F0,0F1,0B1,0B0\n"));
  EXPECT_TRUE(v.ok());
  ASSERT_EQ(v.notes.size(), 1u);
  EXPECT_EQ(v.notes[0].kind, Kind::accumulation);
  EXPECT_THAT(v.str(),
              HasSubstr("note: [actor 0, position 3, 0B0] stage 0 adds the gradient of microbatch 0 after that of 1"));
  EXPECT_EQ(validate(csv("0F0,0B0\n\n")).notes[0].kind, Kind::idle);
}

TEST(Validate, MarkedRows) {
  const Schedule s = csv("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1F0,1B1\n");
  EXPECT_EQ(marked_rows(s, validate(s)),
            "         0      1    2    3      4\n"
            "actor 0  0F0    0F1  0B0  0B1\n"
            "actor 1  [1F0]  1B0  1F1  [1F0]  1B1\n");
  EXPECT_EQ(marked_rows(small(), validate(small())), "");
  Schedule wide = one_f_one_b(40, 100);
  wide.rows[30][150].microbatch = MicrobatchId(3);
  const std::string text = marked_rows(wide, validate(wide));
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 18);
  EXPECT_THAT(text, HasSubstr("[30"));
}

}  // namespace
}  // namespace stretto
