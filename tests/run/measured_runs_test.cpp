#include "stretto/run/measured_runs.h"

#include <gmock/gmock.h>

#include "stretto/cost/cluster_file.h"
#include "support/files.h"
#include "support/message.h"

namespace stretto {
namespace {

using test::Folder;
using testing::HasSubstr;

TEST(MeasuredRuns, AreReadAsTheyWereWritten) {
  const Folder folder;
  for (const char* run : {"a.toml", "b.toml"}) folder.write(run, "");
  folder.write("runs.tsv", measured_tsv({{"a.toml", 0.25, 1e9}, {"b.toml", 3, {}}}));
  const std::vector<MeasuredFile> runs = read_measured((folder / "runs.tsv").string());
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].run, (folder / "a.toml").string()) << "beside the table";
  EXPECT_EQ(runs[0].seconds, 0.25);
  EXPECT_EQ(runs[0].bytes, 1e9);
  EXPECT_EQ(runs[1].bytes, std::nullopt);
}

TEST(MeasuredRuns, MistakesHaveTheirPlace) {
  const Folder folder;
  const std::string file = (folder / "runs.tsv").string();
  const auto refused = [&](const char* text) {
    folder.write("runs.tsv", text);
    return refusal_of([&] { read_measured(file); });
  };
  EXPECT_THAT(refused("run\tsecs\n"), HasSubstr("runs.tsv:1] the columns run and seconds are not both there"));
  EXPECT_THAT(refused("run\tseconds\na.toml\t0\n"), HasSubstr("runs.tsv:2]"));
  EXPECT_THAT(refused("run\tseconds\na.toml\n"), HasSubstr("there is 'a.toml' and ''"));
  EXPECT_THAT(refused("run\tseconds\n"), HasSubstr("it has no run"));
  EXPECT_THAT(refused("run\tseconds\na.toml\t1\n"), HasSubstr("runs.tsv:2] there is no run"));
  folder.write("a.toml", "");
  EXPECT_THAT(refused("run\tseconds\tbytes\na.toml\t1\tmany\n"), HasSubstr("runs.tsv:2] bytes are 'many'"));
  EXPECT_THAT(refusal_of([&] { read_measured(folder.str()); }), HasSubstr("is a directory, not a file"));
  EXPECT_THAT(refusal_of([] { read_measured("/nowhere/runs.tsv"); }), HasSubstr("/nowhere/runs.tsv"));
}

TEST(MeasuredRuns, ATypicalStepIsTheMiddleOne) { EXPECT_EQ(typical_seconds({9, 1, 2}), 2); }

TEST(MeasuredRuns, ACalibratedFileIsFasterOrSlowerByTheFactor) {
  const Folder folder;
  folder.write("run.toml", "[model]\nlayers = 2\n[train]\nbatch = 8\ndtype = \"bf16\"\n");
  const RunConfig run = read_run((folder / "run.toml").string());
  for (const char* text :
       {"device = \"a100-80g\"\nstack = \"nemo\"\n", "[machine]\nflops = 1e12\nmemory_bandwidth = 1e10\n"}) {
    folder.write("c.toml", text);
    const std::string from = (folder / "c.toml").string(), to = (folder / "d.toml").string();
    folder.write("d.toml", calibrated(from, to, {.factor = 1.5}, {.runs = 1}));
    EXPECT_NEAR(predicted_on(run, to).seconds, 1.5 * predicted_on(run, from).seconds,
                1e-9 * predicted_on(run, from).seconds);
  }
}

// Files that a cluster file names lie beside it, wherever that is.
TEST(MeasuredRuns, ACalibratedFileInAnotherFolderFindsItsDevice) {
  const Folder folder;
  folder.write("run.toml", "[model]\nlayers = 2\n[train]\nbatch = 8\n");
  folder.write("mine.toml", "memory = 1e9\nmemory_bandwidth = 1e10\n[peak]\nf32 = 1e11\n");
  folder.write("here.toml", "device = \"mine.toml\"\n");
  const std::string from = (folder / "here.toml").string(), to = (folder / "other/there.toml").string();
  folder.write("other/there.toml", calibrated(from, to, {.factor = 2}, {.runs = 1}));
  const RunConfig run = read_run((folder / "run.toml").string());
  EXPECT_NEAR(predicted_on(run, to).seconds, 2 * predicted_on(run, from).seconds, 1e-9);
}

TEST(MeasuredRuns, CalibratedRatesAreThoseOfTheStacksKernel) {
  const Folder folder;
  folder.write("run.toml", "[model]\nlayers = 2\n[train]\nbatch = 8\ndtype = \"bf16\"\n");
  const RunConfig run = read_run((folder / "run.toml").string());
  for (const char* stack : {"nemo", "megatron-2021", "stretto"}) {
    folder.write("c.toml", fmt::format("device = \"h100-sxm\"\nstack = \"{}\"\n", stack));
    const std::string from = (folder / "c.toml").string(), to = (folder / "d.toml").string();
    folder.write("d.toml", calibrated(from, to, {.attention = 1.5}, {.runs = 1}));
    const StepTime before = predicted_on(run, from), after = predicted_on(run, to);
    EXPECT_GT(after.spent.attention, before.spent.attention) << stack;
    EXPECT_NEAR(after.spent.products, before.spent.products, 1e-12) << stack;
  }
}

}  // namespace
}  // namespace stretto
