#include "stretto/schedule/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <fstream>
#include <sstream>

#include "stretto/schedule/validate.h"
#include "support/message.h"

namespace stretto {
namespace {

using testing::HasSubstr;

std::string slurp(const std::string& name) {
  std::ifstream in(std::string(STRETTO_TEST_DATA) + "/schedules/" + name, std::ios::binary);
  std::stringstream s;
  s << in.rdbuf();
  EXPECT_FALSE(s.str().empty()) << name;
  return s.str();
}

std::string with_crlf(std::string s) {
  for (std::size_t i = 0; (i = s.find('\n', i)) != s.npos; i += 2) s.replace(i, 1, "\r\n");
  return s;
}

class Given : public testing::TestWithParam<const char*> {};

TEST_P(Given, SurvivesByteForByte) {
  const std::string text = slurp(GetParam());
  EXPECT_EQ(parse_csv(text, GetParam()).str(), text);
  EXPECT_EQ(parse_csv(with_crlf(text), GetParam()).str(), with_crlf(text));
  const std::string cut = text.substr(0, text.size() - 1);
  EXPECT_EQ(parse_csv(cut, GetParam()).str(), cut);
}

TEST_P(Given, IsTheSameScheduleAfterWriting) {
  const bool logical =
      std::string_view(GetParam()).starts_with("chimera") || std::string_view(GetParam()).starts_with("dualpipe_");
  const Schedule s = read_csv(slurp(GetParam()), GetParam(), {.pipes = logical ? CsvPipes::logical : CsvPipes::one});
  EXPECT_EQ(s.pipes(), logical ? 2 : 1);
  EXPECT_EQ(read_csv(write_csv(s), "again", {.pipes = CsvPipes::detect}), s);
  EXPECT_EQ(read_csv(write_csv(s, CsvDialect::old), "old", {.dialect = CsvDialect::old, .pipes = CsvPipes::detect}), s);
}

INSTANTIATE_TEST_SUITE_P(Csv, Given,
                         testing::Values("dualpipev_4rank_10mb.csv", "zb1p_2rank_2stagep_comms.csv",
                                         "zb1p_2rank_2stagep_compute.csv", "chimera_p4_m4.csv", "dualpipe_p4_m8.csv",
                                         "v-half_p4_m8.csv", "zb-v_p4_m8.csv"));

TEST(Csv, ReadsActionsOverlapAndPlacement) {
  const Schedule s = read_csv(slurp("dualpipev_4rank_10mb.csv"), "f");
  EXPECT_EQ(s.stages, 8);
  EXPECT_EQ(s.microbatches, 10);
  EXPECT_EQ(s.actor_of, placement({{0, 1, 2, 3, 3, 2, 1, 0}}));
  const Row& row = s.rows[0];
  EXPECT_EQ(row[7], (Action{.phase = Phase::F, .stage = StageId(7)}));
  EXPECT_EQ(row[17], (Action{.phase = Phase::F, .stage = StageId(0), .microbatch = MicrobatchId(7), .overlap = 1}));
  EXPECT_EQ(row[18], (Action{.phase = Phase::B, .stage = StageId(7), .microbatch = MicrobatchId(3), .overlap = 1}));
  EXPECT_EQ(row[19].overlap, 2u);
}

TEST(Csv, IdleAndCommunicationCellsAreNoActions) {
  const Schedule compute = read_csv(slurp("zb1p_2rank_2stagep_compute.csv"), "f");
  const Schedule comms = read_csv(slurp("zb1p_2rank_2stagep_comms.csv"), "f");
  EXPECT_EQ(compute.rows[1], comms.rows[1]);
  EXPECT_EQ(comms.actor_of, placement({{0, 1, 0, 1}}));
  EXPECT_EQ(comms.rows[0].size(), 32u);  // F and B
}

TEST(Csv, PipesAreToldOrDetectedNeverAssumed) {
  const Schedule s = read_csv(slurp("chimera_p4_m4.csv"), "f", {.pipes = CsvPipes::logical});
  EXPECT_EQ(s.actor_of, placement({{0, 1, 2, 3}, {3, 2, 1, 0}}));
  EXPECT_EQ(s.rows[0][2],
            (Action{.phase = Phase::F, .pipe = up_pipe, .stage = StageId(3), .microbatch = MicrobatchId(2)}));
  const std::string text = write_csv(s);
  EXPECT_THAT(text, HasSubstr("0F0,0F1,7F2,7B2"));
  EXPECT_EQ(read_csv(text, "f", {.pipes = CsvPipes::two}), s);
  EXPECT_EQ(read_csv(text, "f").pipes(), 1);
  EXPECT_EQ(read_csv(slurp("zb-v_p4_m8.csv"), "f", {.pipes = CsvPipes::detect}).pipes(), 1);
  EXPECT_THAT(refusal_of([] { read_csv("0F0,1F0,2F0,2B0,1B0,0B0\n", "f", {.pipes = CsvPipes::two}); }),
              HasSubstr("3 stages"));
}

TEST(Csv, TheOlderDialectIsAnOption) {
  const Schedule s = read_csv("0F0,0B0,0W0,0F1,0BW1\n", "f", {.dialect = CsvDialect::old});
  EXPECT_EQ(s.rows[0], (Row{}.F(0, 0).I(0, 0).W(0, 0).F(0, 1).B(0, 1)));
  EXPECT_EQ(write_csv(s, CsvDialect::old), "0F0,0B0,0W0,0F1,0BW1\n");
  EXPECT_EQ(write_csv(s), "0F0,0I0,0W0,0F1,0B1\n");
  EXPECT_THAT(refusal_of([] { parse_csv("0F0,0BW0\n", "f"); }), HasSubstr("dialect old"));
  EXPECT_THAT(refusal_of([] { parse_csv("0F0,0I0\n", "f", CsvDialect::old); }), HasSubstr("current notation"));
}

TEST(Csv, SequencePiecesAndRecompute) {
  const std::string text = "0F0,0F0.1,0R0.1,0B0.1,0B0\n";
  const Schedule s = read_csv(text, "f");
  EXPECT_EQ(s.segments, 2);
  EXPECT_EQ(s.rows[0][2], (Action{.phase = Phase::R, .segment = 1}));
  EXPECT_EQ(write_csv(s), text);
}

TEST(Csv, ASlipIsLeftOutsideTheNumbersInUse) {
  const Schedule s = read_csv("0F0,0F1,0F700000000,0B0,0B1,0B2\n1F0,1F1,1F2,1B0,1B1,1B2\n", "f");
  EXPECT_EQ(s.microbatches, 3);
  EXPECT_EQ(read_csv("0F0,0F1,0B0,0B1\n1F0,9F1,1B0,1B1\n", "f").stages, 2);
  EXPECT_EQ(read_csv("0F0,0F1,0B0,0B1\n", "f", {.stages = 4, .microbatches = 8}).microbatches, 8);
}

TEST(Csv, ErrorsNameFileLineColumnAndCellOfAll) {
  const std::string e =
      refusal_of([] { parse_csv("0F0,0X1\n1F0,,(1F1;1B0)OVERLAP,F2,1F\n,99999F0,1F0x\n", "mine.csv"); });
  EXPECT_THAT(e, HasSubstr("[mine.csv, line 1, column 5, cell '0X1'] there is no kind 'X'"));
  EXPECT_THAT(e, HasSubstr("[mine.csv, line 2, column 6, cell '(1F1;1B0)OVERLAP'] a group is called 'OVERLAP'"));
  EXPECT_THAT(e, HasSubstr("[mine.csv, line 2, column 23, cell 'F2'] the stage is missing"));
  EXPECT_THAT(e, HasSubstr("[mine.csv, line 2, column 26, cell '1F'] the microbatch is missing"));
  EXPECT_THAT(e, HasSubstr("[mine.csv, line 3, column 2, cell '99999F0'] stage 99999 is above 65535"));
  EXPECT_THAT(e, HasSubstr("'x' is left over"));
  EXPECT_THAT(refusal_of([] { parse_csv("", "f"); }), HasSubstr("empty"));
  EXPECT_THAT(refusal_of([] { parse_csv("(0F1;0SEND_F0)OVERLAP_F_B", "f"); }), HasSubstr("cannot be overlapped"));
  EXPECT_THAT(refusal_of([] { parse_csv("(0F1;)OVERLAP_F_B", "f"); }), HasSubstr("empty"));
  EXPECT_THAT(refusal_of([] { parse_csv("0F4294967295", "f"); }), HasSubstr("microbatch 4294967295 is above"));
  EXPECT_THAT(refusal_of([] { read_csv("0UNSHARD\n", "f"); }), HasSubstr("no action"));
}

TEST(Csv, CommunicationCellsMustMatchWhatIsImplied) {
  auto faults = [](const std::string& text) {
    const CsvFile f = parse_csv(text, "f");
    std::string all;
    for (const Fault& x : check_communication(f, schedule_of(f))) all += x.str() + "\n";
    return all;
  };
  const std::string good = "0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n";
  EXPECT_EQ(faults(good), "");
  EXPECT_EQ(faults("0F0,0B0\n1F0,1B0\n"), "");  // none given: nothing to check
  EXPECT_THAT(faults("0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"),
              HasSubstr("[f, line 1, column 1, 0F0] 0SEND_F0 is missing"));
  EXPECT_THAT(faults("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0\n"),  // waits for what nobody sends
              HasSubstr("1SEND_B0 is missing; hint: add 1SEND_B0 after it"));
  EXPECT_THAT(faults("0SEND_F0,0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"), HasSubstr("wrong side of 0F0"));
  EXPECT_THAT(faults("0F0,0SEND_F0,0B0,0RECV_B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"), HasSubstr("wrong side of 0B0"));
  EXPECT_THAT(faults("0F0,0SEND_F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"), HasSubstr("twice"));
  EXPECT_THAT(faults("0F0,0SEND_F0,0SEND_F1,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"),
              HasSubstr("no forward of stage 0, microbatch 1"));
  EXPECT_THAT(faults("0RECV_F0,0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"), HasSubstr("end of the pipe"));
  EXPECT_THAT(faults("0F0,0SEND_F0,1F0,1B0,0B0\n"), HasSubstr("same actor"));

  const std::string sharded = "0UNSHARD,0F0,0F1,0B0,0B1,0RESHARD,0REDUCE_GRAD\n";
  EXPECT_EQ(faults(sharded), "");
  EXPECT_THAT(faults("0F0,0UNSHARD,0F1,0B0,0B1\n"), HasSubstr("not unsharded here"));
  EXPECT_THAT(faults("0UNSHARD,0F0,0UNSHARD,0F1,0B0,0B1\n"), HasSubstr("unsharded already"));
  EXPECT_THAT(faults("0RESHARD,0UNSHARD,0F0,0F1,0B0,0B1\n"), HasSubstr("is not unsharded"));
  EXPECT_THAT(faults("0F0,0F1,0B0,0REDUCE_GRAD,0B1\n"), HasSubstr("still added"));
  EXPECT_THAT(faults("0F0,0F1,0B0,0B1,0REDUCE_GRAD,0REDUCE_GRAD\n"), HasSubstr("reduced twice"));
  EXPECT_THAT(faults("0F0,0B0,1F0,1B0,0REDUCE_GRAD\n"), HasSubstr("stage 1 is never reduced"));
}

TEST(Csv, MarksOfStorageAreKept) {
  const std::string text = "0UNSHARD,0F0,0F1,0B0,0RESHARD,0UNSHARD,0B1,0RESHARD,0REDUCE_GRAD\n";
  const Schedule s = read_csv(text, "f");
  using Kind = StorageMark::Kind;
  EXPECT_EQ(s.marks,
            (IdVector<ActorId, std::vector<StorageMark>>{{{.kind = Kind::unshard, .before = ActionId(0)},
                                                          {.kind = Kind::reshard, .before = ActionId(3)},
                                                          {.kind = Kind::unshard, .before = ActionId(3)},
                                                          {.kind = Kind::reshard, .before = ActionId(4)},
                                                          {.kind = Kind::reduce_grad, .before = ActionId(4)}}}));
  EXPECT_TRUE(s.marked(ActorId(0), Kind::unshard));
  EXPECT_FALSE(read_csv("0F0,0F1,0B0,0B1\n", "f").marked(ActorId(0), Kind::unshard));
  EXPECT_EQ(write_csv(s), text);
}

TEST(Csv, GivenCommunicationIsWhatWeInfer) {
  const CsvFile f = parse_csv(slurp("zb1p_2rank_2stagep_comms.csv"), "f");
  EXPECT_TRUE(check_communication(f, schedule_of(f)).empty());
}

// Bytes that are nearly a schedule reach further into the parser than random ones.
TEST(Csv, AnyBytesAreReadOrRefused) {
  EXPECT_TRUE(rc::check("any bytes are read or refused", [] {
    const std::string alphabet = "0123456789FBIWR,;()\n\r. SENDRCV_OLAPUHTG\"\xff";
    const auto text = *rc::gen::container<std::string>(rc::gen::elementOf(alphabet));
    try {
      const CsvFile f = parse_csv(text, "f");
      RC_ASSERT(parse_csv(f.str(), "f") == f);
      const Schedule s = schedule_of(f, {.pipes = CsvPipes::detect});
      check_communication(f, s);
    } catch (const Error& e) {
      RC_ASSERT(e.kind() == Error::Kind::input);
    }
  }));
}

TEST(Csv, RowsAreCounted) {
  const std::string most = "0F0,0B0" + std::string(65535, '\n');
  EXPECT_EQ(read_csv(most, "f").rows.size(), 65535u);
  try {
    read_csv(most + "\n", "f");
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "[f] 65536 rows; hint: at most 65535 are possible: one per actor");
  }
  Schedule s = looped({.actors = 1, .microbatches = 1});
  s.rows[0].F(0, 0).B(0, 0);
  s.rows.resize(65536);
  EXPECT_THAT(validate(s).str(), HasSubstr("[rows] 65536 rows; hint: at most 65535 are possible"));
}

TEST(Csv, BlanksAtTheEndAreNoActor) {
  EXPECT_EQ(parse_csv("0F0,0B0\n \r", "f").str(), "0F0,0B0\n");
  EXPECT_EQ(parse_csv("0F0,0B0\n\n", "f").rows.size(), 2u);  // but an empty line is one without actions
}

}  // namespace
}  // namespace stretto
