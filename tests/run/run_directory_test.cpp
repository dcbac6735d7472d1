#include "stretto/run/inner/run_directory.h"

#include <gmock/gmock.h>

#include <fstream>

#include "stretto/formats/fields.h"
#include "stretto/run/inner/metrics.h"
#include "support/files.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::MatchesRegex;

// The default directory is below the current one.
class RunDirectory : public testing::Test {
 protected:
  RunDirectory() { fs::current_path(folder_.str()); }
  ~RunDirectory() override { fs::current_path(before_); }
  fs::path before_ = fs::current_path();
  test::Folder folder_;
};

TEST_F(RunDirectory, HasNameAndTimeAndIsAlwaysNew) {
  const LogSection log{.name = "mine"};
  const std::string a = make_run_directory(log), b = make_run_directory(log), c = make_run_directory(log);
  EXPECT_THAT(a, MatchesRegex("runs/mine-[0-9]{8}-[0-9]{6}"));
  EXPECT_NE(a, b);
  EXPECT_NE(b, c);
  for (const std::string& d : {a, b, c}) EXPECT_TRUE(fs::is_empty(d));
}

TEST_F(RunDirectory, IsMadeWhereAskedAndNeverWrittenOver) {
  const LogSection log{.dir = "deep/er/"};
  EXPECT_EQ(make_run_directory({.dir = "deep/er/"}), fs::path("deep/er/"));
  EXPECT_EQ(make_run_directory(log), fs::path("deep/er/"));  // still empty
  std::ofstream("deep/er/config.toml") << "x";
  try {
    make_run_directory(log);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), 1);
    EXPECT_THAT(e.what(), HasSubstr("[log.dir] 'deep/er/' exists and is not empty; hint: go on with its run by "
                                    "--resume, choose another with --log.dir=DIR"));
  }
}

// What a run that was killed had begun to write goes; what is anybody's own stays.
TEST_F(RunDirectory, IsSwept) {
  for (const char* file :
       {"run/config.toml.77-0.tmp", "run/report.html.12345-12.tmp", "run/.step-00000003-1.tmp/x",
        "run/checkpoints/.step-00000003-1.tmp/x", "run/best/.step-00000003-1.tmp/x", "run/.seen-99.tmp/x"})
    folder_.write(file, "x");
  folder_.write("early/config.toml.77-0.tmp", "x");
  EXPECT_EQ(make_run_directory({.dir = "early"}), fs::path("early")) << "killed before there was anything";
  const std::vector<std::string> own{"notes.tmp", "a-1.tmp", "3-4.tmp", ".tmp", ".-1.tmp", "x.1-2.tmp.txt", "x.1-.tmp"};
  for (const std::string& file : own) folder_.write("run/" + file, "x");
  sweep("run");
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator("run")) left.push_back(entry.path().filename());
  std::vector<std::string> all = own;
  all.insert(all.end(), {"checkpoints", "best"});
  EXPECT_THAT(left, testing::UnorderedElementsAreArray(all));
  EXPECT_TRUE(fs::is_empty("run/checkpoints"));
  EXPECT_TRUE(fs::is_empty("run/best"));
}

TEST_F(RunDirectory, MayStandRightHere) {
  EXPECT_EQ(make_run_directory({.dir = "here"}), fs::path("here"));
  EXPECT_TRUE(fs::is_directory("here"));
}

TEST_F(RunDirectory, AFileInTheWayIsNamed) {
  std::ofstream("file") << "x";
  for (const char* dir : {"file", "file/below"}) {
    try {
      make_run_directory({.dir = dir});
      FAIL() << dir;
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), HasSubstr(std::string("[log.dir] cannot make the run directory '") + dir + "': "));
    }
  }
}

TEST_F(RunDirectory, IsFoundByTheNameThatWasGiven) {
  const std::string name = "a/./b//c/../d";
  EXPECT_EQ(make_run_directory({.dir = name}), fs::path(name));
  EXPECT_TRUE(fs::is_directory(name));
  EXPECT_TRUE(fs::is_directory("a/b/d"));
}

std::string metrics_of(int first, int last) {
  std::string text;
  for (int i = first; i <= last; ++i) text += fmt::format("{{\"step\":{},\"loss\":1.5}}\n", i);
  return text;
}

TEST_F(RunDirectory, MetricsAreCutWhereARunGoesOn) {
  folder_.write("m", metrics_of(1, 9) + "{\"step\":10,\"lo");
  EXPECT_EQ(cut_metrics("m", 9), "");
  EXPECT_EQ(test::text_of("m"), metrics_of(1, 9));
  EXPECT_EQ(cut_metrics("m", 4), "");
  EXPECT_EQ(test::text_of("m"), metrics_of(1, 4));
  EXPECT_FALSE(fs::exists("m.damaged"));
  EXPECT_EQ(cut_metrics("none", 4), "");
}

TEST_F(RunDirectory, ADamagedLineOfMetricsTakesNoOtherWithIt) {
  const std::string good = metrics_of(1, 1), rest = metrics_of(3, 10);
  for (const std::string damaged : {"{\"step\":2,\"l\xff\n", "\n", "[]\n", "{\"loss\":1}\n", "{\"step\":\"2\"}\n"}) {
    folder_.write("m", good + damaged + rest + metrics_of(11, 12));
    EXPECT_EQ(cut_metrics("m", 10), "note: 1 damaged line of m (2) is left out; the file as it was is m.damaged");
    EXPECT_EQ(test::text_of("m"), good + rest);
    EXPECT_EQ(test::text_of("m.damaged"), good + damaged + rest + metrics_of(11, 12));
    EXPECT_EQ(read_metrics("m").size(), 9u);
    EXPECT_EQ(cut_metrics("m", 10), "");
    fs::remove("m.damaged");
  }
  // One that was kept before stays; many lines are counted, and a few of them named.
  folder_.write("m.damaged", "before");
  folder_.write("m", good + "x\nx\nx\nx\nx\nx\n" + rest);
  EXPECT_EQ(cut_metrics("m", 10),
            "note: 6 damaged lines of m (2, 3, 4, 5, 6, ...) are left out; the file as it was is m.damaged-2");
  EXPECT_EQ(test::text_of("m.damaged"), "before");
  EXPECT_EQ(test::text_of("m"), good + rest);
}

TEST_F(RunDirectory, MetricsKeepEveryDigit) {
  const double loss = 0.1 + 0.2;
  {
    MetricsFile metrics("metrics.jsonl");
    metrics.write({{"step", 1}, {"loss", loss}});
    metrics.write({{"step", 2}, {"loss", std::numeric_limits<double>::quiet_NaN()}});
  }
  EXPECT_EQ(test::text_of("metrics.jsonl"), "{\"step\":1,\"loss\":0.30000000000000004}\n{\"step\":2,\"loss\":null}\n");
  EXPECT_THROW(MetricsFile("none/metrics.jsonl"), Error);
}

}  // namespace
}  // namespace stretto
