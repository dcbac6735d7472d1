// Checkpoints of several processes: every one writes what it holds, and whoever goes on reads it.
#include <sys/mount.h>

#include "launched.h"
#include "stretto/checkpoint/checkpoint.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class Checkpoints : public test::OneRankDiffers {
 protected:
  // One leg of a run: as processes or as threads, `ranks` of them.
  void leg(bool processes, int ranks, const std::string& layout, int steps, const std::string& directory) {
    const std::string train =
        "train small.toml --resume " + layout + " --train.steps=" + std::to_string(steps) + " --log.dir=" + directory;
    const test::Result r = processes ? launch(ranks, train) : run(train);
    ASSERT_EQ(r.code, 0) << r.error << log(0);
    last_ = numbers(r.out);
  }
  fs::path checkpoint(const std::string& directory, i64 step) const {
    return folder_ / (directory + "/checkpoints/" + checkpoint_name(step));
  }
  std::vector<std::string> last_;  // what the last leg has come to
};

// Four processes, four threads in another layout, four processes: the bits of threads all along.
TEST_F(Checkpoints, OfFourProcessesAreGoneOnWithAsThreadsAndBack) {
  const std::string split = "--parallel.data=2 --parallel.tensor=2 --parallel.zero=1",
                    pipe = "--parallel.pipe=2 --parallel.data=2 --parallel.zero=3";
  for (const bool processes : {false, true}) {
    const std::string directory = processes ? "processes" : "threads";
    leg(processes, 4, split, 2, directory);
    leg(false, 4, pipe, 4, directory);
    leg(processes, 4, split, 6, directory);
  }
  const Checkpoint whole(checkpoint("threads", 6)), pieces(checkpoint("processes", 6));
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_TRUE(fs::exists(pieces.path() / ("shard-rank-0000" + std::to_string(rank) + "-00001.safetensors")));
  EXPECT_EQ(pieces.parameters(), whole.parameters());
  for (const std::string& name : whole.parameters()) {
    EXPECT_EQ(pieces.parameter(name).bytes, whole.parameter(name).bytes) << name;
    for (const char* state : {"m", "v"})
      EXPECT_EQ(pieces.state(state, name).bytes, whole.state(state, name).bytes) << state << " of " << name;
  }
  for (const char* directory : {"threads", "processes"})
    ASSERT_EQ(run(std::string("convert ") + directory + " " + directory + "-hf").code, 0);
  EXPECT_EQ(test::text_of(folder_ / "processes-hf/model.safetensors"),
            test::text_of(folder_ / "threads-hf/model.safetensors"));
  EXPECT_NE(test::text_of(folder_ / "threads-hf/model.safetensors"), "");
}

// The first rank's part has its place, the second's has not.
TEST_F(Checkpoints, DiskOfAnotherRankThanTheFirst) {
  fs::create_directory(folder_ / "run");
  if (mount("tmpfs", (folder_ / "run").c_str(), "tmpfs", 0, "size=6m") != 0)
    GTEST_SKIP() << "nothing can be mounted here";
  const test::Result r =
      launch(2,
             "train small.toml --parallel.pipe=2 --parallel.stages=[1,7] --model.width=256 --checkpoint.every=0 "
             "--train.steps=1 --log.dir=run");
  const bool none = fs::is_empty(folder_ / "run/checkpoints");
  umount((folder_ / "run").c_str());
  EXPECT_EQ(r.code, 3) << r.error;
  EXPECT_THAT(r.error, AllOf(HasSubstr("the checkpoint of step 1 could not be written"), HasSubstr("rank 1: [/"),
                             HasSubstr("shard-rank-00001-00001.safetensors"), HasSubstr("No space left on device")))
      << log(0);
  EXPECT_TRUE(none) << "something is left of it";
  expect_nothing_left();
}

// As on machines without a common file system.
TEST_F(Checkpoints, AreCollectedWhereARankDoesNotSeeTheDirectory) {
  fs::create_directory(folder_ / "run");
  if (test::shell("unshare -m mount -t tmpfs none run", folder_.str()).code != 0)
    GTEST_SKIP() << "nothing can be mounted here";
  mpirun_with(1, "exec unshare -m sh -c 'mount -t tmpfs none run && exec \"$@\"' sh \"$@\"");
  const std::string layout = "train small.toml --parallel.data=2 --parallel.zero=1 --log.dir=";
  const test::Result r =
      test::shell(mpirun(2) + "./rank '" + test::binaries() + "/stretto' " + layout + "run", folder_.str());
  ASSERT_EQ(r.code, 0) << r.error;
  EXPECT_THAT(r.out, HasSubstr("note: not all ranks see the run directory"));
  ASSERT_EQ(run(layout + "threads").code, 0);
  const Checkpoint collected(checkpoint("run", 4)), threads(checkpoint("threads", 4));
  EXPECT_EQ(collected.manifest().shards, threads.manifest().shards);
}

}  // namespace
}  // namespace stretto
