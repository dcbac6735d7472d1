#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/command.h"
#include "support/files.h"

namespace stretto::test {
namespace {

Result show(const std::string& arguments) { return stretto(arguments, STRETTO_SOURCE); }

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(Show, DrawsInTheTerminal) {
  const Result r = show("show --schedule 1f1b --actors 2 --microbatches 3 --width 52");
  EXPECT_EQ(r.code, 0) << r.error;
  EXPECT_EQ(r.out,
            "1f1b: makespan 11, bubble 18.2%, peak 2 activations\n"
            "         0                   10  busy  peak\n"
            "actor 0  F0F1  B0--F2B1--  B2--   82%     2\n"
            "actor 1    F0B0--F1B1--F2B2--     82%     1\n"
            "F forward  B backward\n");
}

TEST(Show, TimesChangeThePrediction) {
  const Result r = show("show --schedule zb-h1 --actors 4 --microbatches 8 --times F=2,I=2,W=1,comm=0.5");
  EXPECT_EQ(r.code, 0) << r.error;
  const Result same = show("show --schedule zb-h1 --actors 4 --microbatches 8");
  EXPECT_NE(r.out, same.out);
  EXPECT_THAT(same.out, HasSubstr("makespan 27,"));
}

TEST(Show, MessagesOnTheirOwnLines) {
  const Result r = show("show --schedule 1f1b --actors 2 --microbatches 3 --times comm=1 --messages");
  EXPECT_EQ(r.code, 0) << r.error;
  EXPECT_THAT(r.out, HasSubstr("  messages"));
}

TEST(Show, WritesEachKindOfFile) {
  const Folder folder;
  const std::string command = "show --schedule zb-v --actors 4 --microbatches 8 -o " + folder.str();
  for (const char* name : {"x.svg", "x.html", "x.csv", "x.json"}) {
    const Result r = show(command + "/" + name);
    EXPECT_EQ(r.code, 0) << r.error;
    EXPECT_THAT(r.out, HasSubstr("makespan 25.5"));
  }
  EXPECT_THAT(text_of(folder / "x.svg"), StartsWith("<svg "));
  EXPECT_THAT(text_of(folder / "x.html"), StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(text_of(folder / "x.csv"), StartsWith("0F0,0F1,"));
  EXPECT_FALSE(nlohmann::json::parse(text_of(folder / "x.json"))["traceEvents"].empty());
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.str())) ++files;
  EXPECT_EQ(files, 4) << "no temporary file may stay";
}

TEST(Show, ReadsWhatItWrites) {
  const Folder folder;
  const std::string file = (folder / "mine.csv").string();
  ASSERT_EQ(show("show --schedule interleaved-1f1b --actors 4 --microbatches 8 -o " + file).code, 0);
  const Result r = show("show --schedule " + file);
  EXPECT_EQ(r.code, 0) << r.error;
  EXPECT_THAT(r.out, HasSubstr("makespan 27,"));
}

TEST(Show, RefusesWhatCannotRunWithAllFaults) {
  const Folder folder;
  folder.write("bad.csv", "0F0,0B0,0F1,0B1\n1F0,1F0,1B0,1B1\n");
  const Result r = show("show --schedule " + (folder / "bad.csv").string() + " -o " + (folder / "x.svg").string());
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.error, HasSubstr("1F0"));  // twice
  EXPECT_THAT(r.error, HasSubstr("1F1"));  // missing
  EXPECT_THAT(r.error, HasSubstr("hint: "));
  EXPECT_THAT(r.error, HasSubstr("[1F0]"));  // marked in its row
  EXPECT_FALSE(std::filesystem::exists(folder / "x.svg"));
}

TEST(Show, TheBuffersOfProductsArePartOfMemory) {
  EXPECT_THAT(show("show examples/quickstart.toml memory").out,
              testing::AllOf(testing::ContainsRegex("products: 2.00 MiB on every rank"),
                             HasSubstr(" MiB in all, with whole pages and the buffers of products\n")));
  EXPECT_THAT(show("show examples/quickstart.toml memory --parallel.device=emulated").out,
              testing::Not(HasSubstr("products")));
}

TEST(Show, RefusesBadRequests) {
  const struct {
    const char *arguments, *message;
    int code;
  } cases[] = {
      {"show", "it is not said what to show", 2},
      {"show --schedule 1f1b --schedule gpipe --actors 2 --microbatches 2", "stretto simulate", 2},
      {"show --schedule zbv --actors 4 --microbatches 8", "did you mean 'zb-v'?", 1},
      {"show --schedule 1f1b", "--actors", 2},
      {"show --schedule 1f1b --actors -3 --microbatches 8", "-3", 2},
      {"show --schedule 1f1b --actors 2000000000 --microbatches 2000000000", "hint", 1},
      {"show --schedule dualpipe --actors 4 --microbatches 3", "dualpipe", 1},
      {"show --schedule 1f1b --actors two --microbatches 8", "", 2},
      {"show --schedule 1f1b --actors 2 --microbatches 2 --times F=x", "'F=x'", 1},
      {"show --schedule 1f1b --actors 2 --microbatches 2 --times F=-1", "'F=-1'", 1},
      {"show --schedule 1f1b --actors 2 --microbatches 2 --times F", "'F'", 1},
      {"show --schedule 1f1b --actors 2 --microbatches 2 --times F=nan", "'F=nan'", 1},
      {"show --schedule 1f1b --actors 2 --microbatches 2 --times comm=1e308", "'comm=1e308'", 1},
      {"show --schedule 1f1b --actors 2 --microbatches 2 --times B=2", "I and then W", 1},
      {"show --schedule 1f1b --actors 2 --microbatches 2 --times G=2", "no known kind", 1},
      {"show --schedule 1f1b --actors 2 --microbatches 2 -o picture.bmp", ".svg", 2},
      {"show examples/quickstart.toml schedule --actors 8", "--actors is an option of a schedule", 2},
      {"show examples/quickstart.toml schedule --dialect old --pipes two", "--dialect, --pipes are options", 2},
      {"show examples/quickstart.toml memory --times F=5", "--times is an option of a schedule", 2},
      {"show examples/quickstart.toml memory --train.batch=16777216 --model.context=67108864 --model.vocab=67108864",
       "more than 2^48 elements", 1},
      {"show --schedule no-such-file.csv --actors 2 --microbatches 2", "no-such-file.csv", 1},
  };
  for (const auto& c : cases) {
    const Result r = show(c.arguments);
    EXPECT_EQ(r.code, c.code) << c.arguments << "\n" << r.error;
    EXPECT_THAT(r.error, HasSubstr(c.message)) << c.arguments;
    EXPECT_THAT(r.error, Not(HasSubstr("[internal]"))) << c.arguments;
    EXPECT_EQ(r.out, "") << c.arguments;
  }
}

TEST(Show, EveryKeyOfARunWithItsValue) {
  const Result r = show("show examples/quickstart.toml config --train.steps=7");
  EXPECT_EQ(r.code, 0) << r.error;
  for (const char* line : {"\nsteps = 7\n", "\npipe = 2\n", "\nschedule = \"zb-v\"\n", "\nkeep = "})
    EXPECT_THAT(r.out, HasSubstr(line));
  const Result defaults = show("show config");
  EXPECT_EQ(defaults.code, 0) << defaults.error;
  EXPECT_THAT(defaults.out, HasSubstr("\npipe = 1\n"));
  EXPECT_EQ(show("show config --train.steps=0").code, 1);
}

TEST(Show, NothingThatIsReadIsWrittenOver) {
  const Folder folder;
  const std::string run = "[model]\nlayers = 1\n", rows = "0F0,0B0 \n1F0,1B0\n";
  folder.write("run.toml", run);
  folder.write("own.csv", rows);
  for (const std::string arguments : {"show run.toml config -o run.toml", "show --schedule own.csv -o own.csv"}) {
    const Result r = stretto(arguments, folder.str());
    EXPECT_EQ(r.code, 1) << arguments;
    EXPECT_THAT(r.error, HasSubstr(", which is read; hint: choose another name"));
  }
  EXPECT_EQ(text_of(folder / "run.toml"), run);
  EXPECT_EQ(text_of(folder / "own.csv"), rows);
}

TEST(Show, SaysWhenAFileCannotBeWritten) {
  const Result r = show("show --schedule 1f1b --actors 2 --microbatches 2 -o /no-such-folder/x.svg");
  EXPECT_NE(r.code, 0);
  EXPECT_THAT(r.error, HasSubstr("/no-such-folder/x.svg"));
}

}  // namespace
}  // namespace stretto::test
