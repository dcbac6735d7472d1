#include "stretto/run/console.h"

#include <gmock/gmock.h>

#include "support/files.h"

namespace stretto {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Console, RowsStandUnderTheirHeader) {
  EXPECT_EQ(row_header(), "    step       loss  grad_norm         lr     tok/s  mfu%        mem");
  const ConsoleRow row{.step = 120,
                       .loss = 2.5,
                       .grad_norm = 0.25,
                       .lr = 3e-4,
                       .tokens_per_second = 12345.6,
                       .memory = 64u << 20,
                       .mfu = 0.4};
  EXPECT_EQ(row_text(row), "     120    2.50000     0.2500  3.000e-04     12346  40.0   64.0 MiB");
  EXPECT_EQ(row_text(row).size(), row_header().size());
  ConsoleRow with = row;
  with.validation = 2.75;
  EXPECT_EQ(row_text(with), row_text(row) + "   validation loss 2.75000");
}

TEST(Console, SeveralActorsHaveAColumnMore) {
  const ConsoleRow row{.step = 1, .bubble = 0.125};
  EXPECT_THAT(row_header(row), HasSubstr(" mfu% bubble%        mem"));
  EXPECT_EQ(row_text(row).size(), row_header(row).size());
  EXPECT_THAT(row_text(row), HasSubstr("   0.0    12.5        0 B"));
}

TEST(Console, ExpertsHaveColumnsMore) {
  const ConsoleRow row{.step = 1, .imbalance = 1.625, .dropped = 0.0625};
  EXPECT_THAT(row_header(row), HasSubstr(" mfu%  uneven   drop%        mem"));
  EXPECT_EQ(row_text(row).size(), row_header(row).size());
  EXPECT_THAT(row_text(row), HasSubstr("   0.0   1.62x     6.2        0 B"));
}

TEST(Console, QuietAndVerbose) {
  const test::Folder folder;
  const auto said = [&](Verbosity v) {
    std::FILE* out = std::fopen((folder / "out").c_str(), "w");
    {
      Console console(out, v);
      console.say("line");
      console.detail("detail");
      console.row({.step = 1});
      console.result("result");
    }
    std::fclose(out);
    return test::text_of(folder / "out");
  };
  const std::string row = row_header() + "\n" + row_text({.step = 1}) + "\n";
  EXPECT_EQ(said(Verbosity::quiet), "result\n");
  EXPECT_EQ(said(Verbosity::normal), "line\n" + row + "result\n");
  EXPECT_EQ(said(Verbosity::verbose), "line\ndetail\n" + row + "result\n");
}

TEST(Console, TheLogHasEverything) {
  const test::Folder folder;
  std::FILE* out = std::fopen((folder / "out").c_str(), "w");
  {
    Console console(out, Verbosity::quiet);
    console.say("before");
    console.log_to(folder / "log.txt");
    console.row({.step = 1});
    console.log("only there");
    console.result("\033[31mre\033[0msult");
  }
  EXPECT_EQ(test::text_of(folder / "log.txt"),
            "before\n" + row_header() + "\n" + row_text({.step = 1}) + "\nonly there\nresult\n")
      << "a file has no colours";
  EXPECT_EQ(test::text_of(folder / "out"), "\033[31mre\033[0msult\n");
  {
    Console console(out, Verbosity::quiet);  // a run that goes on
    console.say("again");
    console.log_to(folder / "log.txt");
  }
  std::fclose(out);
  EXPECT_THAT(test::text_of(folder / "log.txt"), testing::EndsWith("\nresult\nagain\n"));
}

TEST(Console, TheBarFillsAndFits) {
  EXPECT_EQ(bar_text(299, 300, 0.004, 100), "[=======================================>]  99%  step 299/300  1 s left");
  EXPECT_EQ(bar_text(300, 300, 0, 100), "[========================================] 100%  step 300/300  0 s left");
  EXPECT_EQ(bar_text(150, 300, 125, 100), "[====================>                   ]  50%  step 150/300  2m05s left");
  EXPECT_THAT(bar_text(300, 300, 0, 100), HasSubstr("[========================================] 100%  step 300/300"));
  EXPECT_THAT(bar_text(299, 300, 1, 100), HasSubstr(" 99%"));
  for (int width = 0; width < 120; ++width)
    for (i64 step : {1, 77, 299, 300}) EXPECT_LE(int(bar_text(step, 300, 12.5, width).size()), width);
}

TEST(Console, PlainLinesWhenItIsNoTerminal) {
  const test::Folder folder;
  std::FILE* out = std::fopen((folder / "out").c_str(), "w");
  {
    Console console(out);
    console.say("hello");
    console.progress(1, 10, 3);
    console.row({.step = 1});
    console.progress(2, 10, 3);
    console.row({.step = 2});
    console.close();
  }
  std::fclose(out);
  EXPECT_EQ(test::text_of(folder / "out"),
            "hello\n" + row_header() + "\n" + row_text({.step = 1}) + "\n" + row_text({.step = 2}) + "\n");
}

}  // namespace
}  // namespace stretto
