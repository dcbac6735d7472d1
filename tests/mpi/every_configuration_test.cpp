// Every configuration of the pipelines' and layouts' tests that has 2, 3, 4 or 8 ranks, as processes: the bits of
// threads, through shared memory and through messages alone. Some of them here, all with STRETTO_LONG=1.
#include "processes.h"

namespace stretto {
namespace {

class EveryConfiguration : public test::Processes {
 protected:
  static bool thorough() {
    const char* asked = std::getenv("STRETTO_LONG");
    return asked && *asked == '1';
  }
  // All configurations of one test program that have so many ranks, in one job. Of `all` of them some are taken: eight
  // processes compile for seconds, so one has to do.
  void expect_same(int ranks, const std::string& program, const std::string& filter, int all) {
    const int every = thorough() ? 1 : std::max(1, ranks == 8 ? all : all / 2);
    const test::Result r =
        test::shell("export STRETTO_TEST_PROCESSES=" + std::to_string(every) + " RC_PARAMS=seed=7\n" + mpirun(ranks) +
                        "'" + test::binaries() + "/tests/" + program + "' --gtest_filter='" + filter + "'",
                    folder_.str());
    EXPECT_EQ(r.code, 0) << r.out << r.error;
    std::smatch m;
    static const std::regex count("([0-9]+) configurations: processes give the bits of threads");
    ASSERT_TRUE(std::regex_search(r.out, m, count)) << r.out << r.error;
    EXPECT_GE(std::stoi(m[1]), all / every) << "as processes of " << ranks;
    RecordProperty("compared", m[1].str());
  }
  void pipelines(int ranks, int all) {
    expect_same(ranks, "test_end_to_end", "Pipeline.*BitEqual*:Recompute.*BitEqual*:TwoPipes.EqualThe*", all);
  }
  void layouts(int ranks, int all) {
    expect_same(ranks, "test_layouts", "*Families*:Experts*" + std::string(thorough() ? ":RandomLayouts*" : ""), all);
  }
};

TEST_F(EveryConfiguration, PipelinesOfTwo) { pipelines(2, 90); }
TEST_F(EveryConfiguration, PipelinesOfThree) { pipelines(3, 50); }
TEST_F(EveryConfiguration, PipelinesOfFour) { pipelines(4, 110); }
TEST_F(EveryConfiguration, PipelinesOfEight) { pipelines(8, 16); }
TEST_F(EveryConfiguration, LayoutsOfTwo) { layouts(2, 4); }
TEST_F(EveryConfiguration, LayoutsOfFour) { layouts(4, 25); }
TEST_F(EveryConfiguration, LayoutsOfEight) { layouts(8, 120); }

// How many rows go between which processes is found in every step; one of these runs has to make room for them.
TEST_F(EveryConfiguration, ExchangedRowsOfFour) { expect_same(4, "test_layouts", "Rows.OptionsOfExperts", 2); }

// The update is stopped on all of four processes by a number that is not finite on one of them.
TEST_F(EveryConfiguration, NotFiniteOnOneRank) {
  const test::Result r = test::shell("export STRETTO_TEST_PROCESSES=1\n" + mpirun(4) + "'" + test::binaries() +
                                         "/tests/test_layouts' --gtest_filter=LayoutBits.NonfiniteOnOneRank",
                                     folder_.str());
  EXPECT_EQ(r.code, 0) << r.out << r.error;
  EXPECT_THAT(r.out, testing::HasSubstr("1 test from 1 test suite ran"));
}

}  // namespace
}  // namespace stretto
