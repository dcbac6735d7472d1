#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "support/command.h"
#include "support/files.h"

namespace stretto::test {
namespace {

Result simulate_with(const std::string& arguments) { return stretto(arguments, STRETTO_SOURCE); }

using testing::HasSubstr;

TEST(Simulate, PlainRowsAreSortedByMakespan) {
  const Result r = simulate_with(
      "simulate --schedule gpipe --schedule zb-v --schedule 1f1b --schedule zb-h1 --actors 4 --microbatches 8 "
      "--plain");
  ASSERT_EQ(r.code, 0) << r.error;
  const auto rows = cells(r.out);
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[0], (std::vector<std::string>{"schedule", "actors", "microbatches", "makespan", "span", "period",
                                               "bubble", "peak", "capacity"}));
  EXPECT_EQ(rows[1][0], "zb-v");
  EXPECT_EQ(rows[1][3], "25.5");
  EXPECT_EQ(rows[1][4], "24");
  EXPECT_EQ(rows[1][7], "4");
  EXPECT_EQ(rows[2][0], "zb-h1");
  EXPECT_EQ(rows[3], (std::vector<std::string>{"gpipe", "4", "8", "30", "30", "30", "0.2", "8", "0"}));
  EXPECT_EQ(rows[4], (std::vector<std::string>{"1f1b", "4", "8", "30", "30", "30", "0.2", "4", "1"}));
}

TEST(Simulate, TableForPeople) {
  const Result r = simulate_with("simulate --schedule 1f1b --schedule zb-h1 --actors 4 --microbatches 8");
  ASSERT_EQ(r.code, 0) << r.error;
  EXPECT_THAT(r.out, HasSubstr("20.0%"));
  EXPECT_LT(r.out.find("zb-h1"), r.out.find("1f1b"));
}

TEST(Simulate, ComparesNamesAndFilesOnOnePage) {
  const Folder folder;
  const std::string mine = (folder / "mine.csv").string(), page = (folder / "cmp.html").string();
  ASSERT_EQ(simulate_with("show --schedule gpipe --actors 4 --microbatches 8 -o " + mine).code, 0);
  const Result r =
      simulate_with("simulate --schedule zb-h1 --schedule " + mine + " --actors 4 --microbatches 8 -o " + page);
  ASSERT_EQ(r.code, 0) << r.error;
  const std::string text = text_of(page);
  EXPECT_THAT(text, HasSubstr("mine"));
  EXPECT_THAT(text, HasSubstr("beside zb-h1: how long each kind of work takes"));
  EXPECT_THAT(r.out, HasSubstr("27"));
}

TEST(Simulate, TellsEverythingThatIsWrong) {
  const Result r =
      simulate_with("simulate --schedule zbv --schedule 1f1b --schedule dualpipe --actors 3 --microbatches 8");
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.error, HasSubstr("did you mean 'zb-v'?"));
  EXPECT_THAT(r.error, HasSubstr("[dualpipe]"));
  EXPECT_EQ(r.out, "");
}

TEST(Simulate, RefusesBadUsage) {
  EXPECT_EQ(simulate_with("simulate").code, 2);
  EXPECT_EQ(simulate_with("simulate --schedule 1f1b --actors 2 --microbatches 2 -o x.csv").code, 2);
  EXPECT_EQ(simulate_with("simulate --no-such-flag").code, 2);
}

TEST(Simulate, ADeviceIsNamedAndTimeAndMemoryAreTakenApart) {
  const Folder folder;
  folder.write("c.toml", "device = \"h100-sxm\"\nstack = \"nemo\"\n");
  const std::string on = " --train.dtype=fp8 --cluster " + (folder / "c.toml").string();
  const Result r = simulate_with("simulate examples/quickstart.toml --plain" + on);
  ASSERT_EQ(r.code, 0) << r.error;
  const auto rows = cells(r.out);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0], (std::vector<std::string>{"seconds", "tokens_per_second", "sums", "exposed", "bytes", "products",
                                               "attention", "elements", "collectives", "messages", "sums", "gathers",
                                               "update", "bubble", "states", "activations", "limit"}));
  double sum = 0;
  for (std::size_t i = 5; i < 14; ++i) sum += std::stod(rows[1][i]);
  EXPECT_NEAR(sum, std::stod(rows[1][0]), 1e-6 * sum);
  EXPECT_NEAR(std::stod(rows[1][14]) + std::stod(rows[1][15]), std::stod(rows[1][4]), 1);
  const Result text = simulate_with("simulate examples/quickstart.toml" + on);
  EXPECT_THAT(text.out, HasSubstr("device   h100-sxm, software nemo"));
  const Result refused = simulate_with("train examples/quickstart.toml --train.dtype=fp8 --train.steps=1");
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.error, HasSubstr("can be planned, not trained in"));
}

}  // namespace
}  // namespace stretto::test
