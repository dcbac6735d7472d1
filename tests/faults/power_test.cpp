// The power fails after any change of the disk: what was not made durable by then is there or not. A run that had a
// checkpoint goes on from a whole one, always.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "faults/disk.h"
#include "stretto/checkpoint/checkpoint.h"
#include "support/command.h"
#include "support/files.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;
using test::Change;
using test::Disk;
using test::Folder;
using test::Result;

class Power : public testing::Test {
 protected:
  Power() {
    folder_.write("disk/text.txt", test::sentences(60));
    folder_.write("disk/run.toml",
                  "[model]\nlayers = 1\nwidth = 16\nheads = 2\ncontext = 8\nvocab = 256\n[data]\npath = \"text.txt\"\n"
                  "[train]\nsteps = 5\nbatch = 4\n[checkpoint]\nevery = 1\n[parallel]\npipe = 2\n");
  }
  Result run(const std::string& arguments, const std::string& folder, const std::string& before = "") const {
    return test::shell("env " + before + " '" + test::binaries() + "/stretto' " + arguments, folder_ / folder);
  }
  // Every change that the command makes below `disk`.
  std::vector<Change> changes_of(const std::string& arguments) const {
    const std::string root = fs::canonical(folder_ / "disk").string();
    const Result r = run(arguments, "disk",
                         "LD_PRELOAD='" STRETTO_FAULT_SHIM "' STRETTO_TRACE_ROOT='" + root + "' STRETTO_TRACE='" +
                             (folder_ / "trace").string() + "'");
    EXPECT_EQ(r.code, 0) << r.error;
    return test::changes_in(folder_ / "trace");
  }
  const Folder folder_;
};

TEST_F(Power, FailsAfterAnyChange) {
  if (*STRETTO_FAULT_SHIM == 0) GTEST_SKIP() << "the sanitizer stands in front of the C library";
  const bool all = std::getenv("STRETTO_LONG");
  int states = 0, with_checkpoint = 0, gone_on = 0;
  // keep = 1: a checkpoint goes as soon as the next one is there.
  for (const std::string arguments : {"train run.toml --checkpoint.keep=1 --log.dir=deep/run",
                                      "train --resume=deep/run --train.steps=9 --checkpoint.keep=2"}) {
    Disk disk(fs::canonical(folder_ / "disk"));
    const bool begun = fs::exists(folder_ / "disk/deep");
    const std::vector<Change> changes = changes_of(arguments);
    ASSERT_GT(changes.size(), 50u);
    std::mt19937 chance(7);
    i64 saved = begun ? 5 : 0;  // the newest checkpoint that stands at its place, durably
    for (std::size_t n = 0; n < changes.size(); ++n) {
      disk.apply(changes[n]);
      // Its name is durable when the folder of checkpoints is.
      if (changes[n].op == 's' && changes[n].one.ends_with("/deep/run/checkpoints"))
        for (std::size_t k = n; k-- > 0;)
          if (changes[k].op == 'r' && changes[k].other.find("/checkpoints/step-") != std::string::npos) {
            saved = std::max<i64>(saved, std::stol(changes[k].other.substr(changes[k].other.rfind('-') + 1)));
            break;
          }
      if (!all && n % 3 != 0) continue;
      const int by_chance = all ? 8 : n % 4 == 0;
      for (int state = 0; state < 3 + by_chance; ++state) {
        const auto found = state < 3 ? Disk::Found(state) : Disk::Found::chance;
        const fs::path after = folder_ / "after";
        fs::remove_all(after);
        disk.write(found, after, chance);
        ++states;
        const std::string what = "change " + std::to_string(n) + " of " + std::to_string(changes.size()) + ", state " +
                                 std::to_string(state) + " of: " + arguments;
        if (saved > 0) {
          const Newest newest = newest_checkpoint(after / "deep/run/checkpoints");
          ASSERT_TRUE(newest.checkpoint) << what << (newest.damaged.empty() ? "" : ": " + newest.damaged[0]);
          EXPECT_GE(newest.checkpoint->manifest().step, saved) << what;
          ++with_checkpoint;
        }
        if (saved > 0 && states % (all ? 40 : 400) == 0) {
          const Result rest = run("train --resume=deep/run --train.steps=10", "after");
          EXPECT_EQ(rest.code, 0) << what << rest.error;
          ++gone_on;
        }
      }
    }
  }
  std::printf("%d states of the disk, %d with a checkpoint, %d of them gone on with\n", states, with_checkpoint,
              gone_on);
  EXPECT_GT(with_checkpoint, 100);
}

}  // namespace
}  // namespace stretto
