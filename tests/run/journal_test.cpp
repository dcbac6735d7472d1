// What share of the peak a run says that it reaches.
#include "stretto/run/inner/journal.h"

#include <gmock/gmock.h>

#include <sstream>

#include "support/files.h"

namespace stretto {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Written {
  std::string console;
  std::vector<double> mfu;
};
// Steps of 10 flops in as many seconds as are said.
Written written(double peak, bool measured, const std::vector<double>& seconds) {
  const test::Folder folder;
  std::FILE* out = std::fopen((folder / "out").c_str(), "w");
  Console console(out, Verbosity::normal);
  Journal journal(console, folder.str(),
                  {.every = 3,
                   .steps = i64(seconds.size()),
                   .tokens_per_step = 1,
                   .flops_per_step = 10,
                   .peak = peak,
                   .measured = measured});
  for (std::size_t i = 0; i < seconds.size(); ++i)
    journal.step({.result = {.step = i64(i) + 1, .loss = 1}, .seconds = seconds[i], .last = i + 1 == seconds.size()});
  journal.finish();
  std::fclose(out);
  Written w{.console = test::text_of(folder / "out"), .mfu = {}};
  std::istringstream lines(test::text_of(folder / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const Field read = read_json(line, "metrics.jsonl");
    const Field* mfu = read.find("mfu");
    const auto* whole = std::get_if<i64>(&mfu->value);
    w.mfu.push_back(whole ? double(*whole) : std::get<double>(mfu->value));
  }
  return w;
}

TEST(Journal, WhatIsReachedIsThePeakWhereItWasMeasuredBesideOtherWork) {
  const Written w = written(10, true, {1, 1, 1, 0.5, 0.5, 0.5, 1, 1, 1});
  EXPECT_THAT(w.mfu, testing::ElementsAre(1, 1, 1, 1, 1, 1, 0.5, 0.5, 0.5));
  EXPECT_THAT(w.console, HasSubstr("flop/s are reached, and the measured peak is 10"));
}

TEST(Journal, OneStepThatSeemsShortChangesNothing) {
  const Written w = written(10, true, {2, 0.1, 3.9, 2, 2, 2});
  EXPECT_THAT(w.mfu[1], 1);
  EXPECT_THAT(w.mfu[3], 0.5);
  EXPECT_THAT(w.console, Not(HasSubstr("are reached")));
}

TEST(Journal, APeakThatIsGivenStays) {
  const Written w = written(10, false, {0.5, 0.5, 0.5, 0.5, 0.5, 2});
  EXPECT_THAT(w.mfu, testing::ElementsAre(1, 1, 1, 1, 1, 0.5));
  EXPECT_THAT(w.console, Not(HasSubstr("are reached")));
}

}  // namespace
}  // namespace stretto
