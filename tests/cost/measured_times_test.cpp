#include "stretto/cost/measured_times.h"

#include <gmock/gmock.h>

#include "support/files.h"
#include "support/message.h"

namespace stretto {
namespace {

using testing::HasSubstr;

class TimesFile : public testing::Test {
 protected:
  std::string refusal(const std::string& text) {
    folder_.write("times.tsv", text);
    return input_refusal_of([&] { read_times((folder_ / "times.tsv").string()); });
  }
  test::Folder folder_;
};

TEST_F(TimesFile, ReadsBackWhatWasWritten) {
  const MeasuredTimes times{.graph = 0x93c1f0a4e2b7d518, .pieces = {{0, 0, 1.25e-3, 2e-3, 0}, {1, 1, 3, 4, 5}}};
  folder_.write("times.tsv", times_tsv(times));
  const MeasuredTimes read = read_times((folder_ / "times.tsv").string());
  EXPECT_EQ(read.graph, times.graph);
  EXPECT_EQ(read.pieces, times.pieces);
}

TEST_F(TimesFile, SaysWhatIsWrong) {
  const std::string head = "graph\tpiece\tactor\tF\tI\tW\n";
  EXPECT_THAT(refusal(""), HasSubstr("its first line is empty"));
  EXPECT_THAT(refusal("piece\tactor\tF\tI\tW\n"), HasSubstr("times.tsv:1] there is no column graph"));
  EXPECT_THAT(refusal(head), HasSubstr("there is no piece in it"));
  EXPECT_THAT(refusal(head + "1f\t0\t0\t1\t1\n"), HasSubstr("times.tsv:2] W '' is no time in seconds"));
  EXPECT_THAT(refusal(head + "1f\t0\t0\t1\t1\t-1\n"), HasSubstr("W '-1' is no time in seconds"));
  EXPECT_THAT(refusal(head + "1f\t0\t0\t1\t1\tnan\n"), HasSubstr("W 'nan' is no time in seconds"));
  EXPECT_THAT(refusal(head + "1f\t0\t-1\t1\t1\t1\n"), HasSubstr("actor '-1' is no number"));
  EXPECT_THAT(refusal(head + "1f\t99999999999\t0\t1\t1\t1\n"), HasSubstr("piece '99999999999' is no number"));
  EXPECT_THAT(refusal(head + "xyz\t0\t0\t1\t1\t1\n"), HasSubstr("graph 'xyz' is not"));
  EXPECT_THAT(refusal(head + "1f\t0\t0\t1\t1\t1\n2f\t1\t0\t1\t1\t1\n"), HasSubstr("times.tsv:3] it is of another run"));
}

TEST(MeasuredTimes, ASlowActorIsToldFromWhatItHas) {
  // Kinds: embedding, layers, head. Actor 1 takes 1.3 times as long, and has the head.
  const std::vector<u64> kinds{1, 2, 2, 2, 2, 3};
  const std::vector<double> usual{0.5, 1, 1, 1, 1, 2};
  MeasuredTimes t;
  for (int p = 0; p < 6; ++p) {
    const double by = p < 3 ? 1 : 1.3;
    t.pieces.push_back({p, p < 3 ? 0 : 1, usual[p] * by, 2 * usual[p] * by, usual[p] * by});
  }
  const TimesApart apart = taken_apart(t, kinds, 2);
  EXPECT_NEAR(apart.slower[1] / apart.slower[0], 1.3, 1e-9);
  for (int p = 0; p < 6; ++p) EXPECT_NEAR(apart.pieces[p].seconds() / apart.pieces[1].seconds(), usual[p], 1e-9) << p;
  EXPECT_EQ(taken_apart(t, kinds, 3).slower, std::vector<double>(3, 1)) << "of other actors nothing is known";
}

TEST(MeasuredTimes, ActorsWithNothingInCommonCountAsEquallyFast) {
  const TimesApart apart = taken_apart({.pieces = {{0, 0, 1, 1, 1}, {1, 1, 5, 5, 5}}}, std::vector<u64>{1, 2}, 2);
  EXPECT_NEAR(apart.slower[0], 1, 1e-12);
  EXPECT_NEAR(apart.slower[1], 1, 1e-12);
  EXPECT_NEAR(apart.pieces[1].F, 5, 1e-12);
}

TEST(MeasuredTimes, APieceOnTwoActorsIsTheirMean) {
  const MeasuredTimes t{.pieces = {{0, 0, 1, 2, 3}, {0, 1, 1, 2, 3}, {1, 0, 4, 4, 4}, {1, 1, 4, 4, 4}}};
  const TimesApart apart = taken_apart(t, std::vector<u64>{1, 2}, 2);
  EXPECT_NEAR(apart.pieces[0].W, 3, 1e-12);
  EXPECT_EQ(even_times(t, 2), (Times{.F = 2.5, .I = 3, .W = 3.5}));
}

}  // namespace
}  // namespace stretto
