// One rank runs out of something: memory, disk, finite numbers. All of them end, and the message says which and why.
#include <sys/mount.h>

#include "launched.h"
#include "stretto/checkpoint/checkpoint.h"

namespace stretto {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Scarce = test::OneRankDiffers;

// Nearly all of the model is that rank's.
TEST_F(Scarce, MemoryOfOneRank) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer needs more addresses than the rank is given";
#endif
  const std::string flags = mpirun_with(1, "ulimit -v 1500000");
  const test::Result enough = launch(2, "train small.toml --parallel.pipe=2 --log.dir=small", flags);
  ASSERT_EQ(enough.code, 0) << enough.error << log(1);
  for (const char* how : {"", " --no-shared-memory"}) {
    const test::Result r = launch(
        2,
        std::string("train small.toml --parallel.pipe=2 --parallel.stages=[1,7] --model.width=2048 --model.heads=16 "
                    "--log.dir=run") +
            how,
        flags);
    EXPECT_EQ(r.code, 3) << r.error << log(0) << log(1);
    EXPECT_THAT(r.error, AllOf(HasSubstr("[memory]"), HasSubstr("rank 1"), HasSubstr("hint:"))) << log(0) << log(1);
    expect_nothing_left();
  }
}

// Where ranks have what they share.
TEST_F(Scarce, SharedMemoryOfTheMachine) {
  const std::string little = "mount -t tmpfs -o size=1m none /dev/shm";
  if (test::shell("unshare -m " + little, folder_.str()).code != 0) GTEST_SKIP() << "nothing can be mounted here";
  const test::Result r = test::shell("unshare -m sh -c \"" + little + " && exec '" + test::binaries() +
                                         "/stretto' launch -n 2 --logs=logs -- train small.toml --parallel.pipe=2 "
                                         "--model.width=256 --log.dir=run\"",
                                     folder_.str());
  EXPECT_NE(r.code, 0);
  EXPECT_THAT(r.error, AllOf(HasSubstr("[launch] "), HasSubstr("/dev/shm is full but for "), HasSubstr("hint: ")));
}

// A file system that is too small, for checkpoints alone or for the whole run.
TEST_F(Scarce, DiskOfTheRankThatWrites) {
  const std::string train = "train small.toml --parallel.pipe=2 --model.width=256 --resume --log.dir=";
  ASSERT_EQ(launch(2, train + "begun --train.steps=1").code, 0);
  std::filesystem::create_directory(folder_ / "whole");
  for (const std::string where : {"begun/checkpoints", "whole"}) {
    if (mount("tmpfs", (folder_ / where).c_str(), "tmpfs", 0, "size=256k") != 0)
      GTEST_SKIP() << "nothing can be mounted here";
    const test::Result r = launch(2, train + where.substr(0, where.find('/')));
    umount((folder_ / where).c_str());
    EXPECT_EQ(r.code, 3) << r.error;
    EXPECT_THAT(r.error, AllOf(HasSubstr("rank 0: ["), HasSubstr("No space left on device"))) << where << log(0);
    expect_nothing_left();
  }
}

// Room for as many checkpoints as are kept is enough: the oldest goes when there is none for the next.
TEST_F(Scarce, DiskForAsManyCheckpointsAsAreKept) {
  const std::string train = "train small.toml --parallel.pipe=2 --log.dir=run --resume ";
  ASSERT_EQ(launch(2, train + "--train.steps=1").code, 0);
  u64 bytes = 0;
  const std::filesystem::path checkpoints = folder_ / "run/checkpoints";
  for (const auto& f : std::filesystem::directory_iterator(checkpoints / checkpoint_name(1)))
    bytes += (f.file_size() + 8191) / 4096 * 4096;
  std::filesystem::remove_all(checkpoints);
  std::filesystem::create_directory(checkpoints);
  if (mount("tmpfs", checkpoints.c_str(), "tmpfs", 0, ("size=" + std::to_string(2 * bytes + 8192)).c_str()) != 0)
    GTEST_SKIP() << "nothing can be mounted here";
  const test::Result r = launch(2, train + "--train.steps=6 --checkpoint.every=1 --checkpoint.keep=2");
  const std::vector<std::filesystem::path> all = checkpoints_in(checkpoints);
  umount(checkpoints.c_str());
  EXPECT_EQ(r.code, 0) << r.error << log(0);
  ASSERT_EQ(all.size(), 2u) << log(0);
  EXPECT_EQ(all[0].filename(), checkpoint_name(6));
  EXPECT_THAT(log(0), testing::Not(HasSubstr("could not be written")));
}

TEST_F(Scarce, ARunDirectoryThatCannotBeMade) {
  const test::Result r = launch(2, "train small.toml --parallel.pipe=2 --log.dir=/proc/nowhere/run");
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.error, HasSubstr("rank 0: [log.dir] cannot make the run directory"));
}

TEST_F(Scarce, FiniteNumbers) {
  const test::Result r =
      launch(2, "train small.toml --parallel.pipe=2 --optimizer.lr=1e30 --train.clip=0 --train.steps=50 --log.dir=run");
  EXPECT_EQ(r.code, 3);
  EXPECT_THAT(r.error, HasSubstr("the loss is"));
  expect_nothing_left();
  // The last good step is saved, and the next run does the one that failed again.
  const std::regex failed("\\[train\\] step ([0-9]+): the loss is");
  std::smatch step, again;
  ASSERT_TRUE(std::regex_search(r.error, step, failed)) << r.error;
  const Newest newest = newest_checkpoint(folder_ / "run/checkpoints");
  ASSERT_TRUE(newest.checkpoint);
  EXPECT_EQ(newest.checkpoint->manifest().step, std::stol(step[1]) - 1);
  const test::Result rest = launch(2, "train --resume=run --checkpoint.keep=0");
  EXPECT_EQ(rest.code, 3);
  ASSERT_TRUE(std::regex_search(rest.error, again, failed)) << rest.error;
  EXPECT_EQ(step[1], again[1]);
}

}  // namespace
}  // namespace stretto
