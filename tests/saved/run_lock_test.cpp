#include "stretto/saved/run_lock.h"

#include <gmock/gmock.h>

#include "stretto/run/loop.h"
#include "support/child.h"
#include "support/files.h"
#include "support/message.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

TEST(RunLock, IsHeldByOneAndSaysByWhom) {
  const test::Folder folder;
  {
    const RunLock lock(folder.str());
    EXPECT_TRUE(lock.held());
    EXPECT_THAT(
        refusal_of([&] { RunLock another(folder.str()); }),
        AllOf(StartsWith("[log.dir] '" + folder.str() + "' is in use by process " + std::to_string(getpid()) + " on "),
              HasSubstr(" since 2"), HasSubstr("; hint: wait until that run has ended")));
  }
  EXPECT_TRUE(RunLock(folder.str()).held());
}

TEST(RunLock, IsGivenBackByAProcessThatIsKilled) {
  const test::Folder folder;
  const test::Ended e = test::in_child([&] {
    const RunLock lock(folder.str());
    raise(SIGKILL);
  });
  EXPECT_EQ(e.code, 128 + SIGKILL);
  EXPECT_TRUE(RunLock(folder.str()).held());
}

TEST(RunLock, WhatLiesInItsPlaceIsNotFollowed) {
  const test::Folder folder;
  folder.write("precious", "text");
  fs::create_symlink("precious", folder / "run.lock");
  EXPECT_THAT(refusal_of([&] { RunLock lock(folder.str()); }), HasSubstr("/run.lock] cannot be opened: "));
  EXPECT_EQ(test::text_of(folder / "precious"), "text");
}

// A job that was submitted twice: the second one neither begins again nor goes on, and removes nothing.
TEST(RunLock, TwoRunsInOneDirectory) {
  const test::Folder folder;
  folder.write("text.txt", std::string(2000, 'x'));
  const auto config = [&](const std::string& steps) {
    return read_run("", {"--model.layers=1", "--model.width=16", "--model.heads=1", "--model.context=16",
                         "--train.batch=2", "--train.steps=" + steps, "--data.path=" + (folder / "text.txt").string(),
                         "--log.dir=" + (folder / "run").string()});
  };
  std::FILE* nowhere = std::fopen("/dev/null", "w");
  train(config("2"), nowhere);
  {
    const RunLock other(folder / "run");
    const fs::path checkpoint = folder / "run/checkpoints/step-00000002";
    for (const std::string& from : {std::string(), (folder / "run").string()})
      EXPECT_THAT(refusal_of([&] { train(config("4"), nowhere, Verbosity::quiet, from); }),
                  HasSubstr("/run' is in use by process "));
    // From one checkpoint a run goes on elsewhere.
    RunConfig elsewhere = config("4");
    elsewhere.log.dir = folder / "elsewhere";
    EXPECT_EQ(train(elsewhere, nowhere, Verbosity::quiet, checkpoint.string()).steps, 4);
    // Made by somebody who has not written anything yet.
    fs::create_directory(folder / "new");
    const RunLock early(folder / "new");
    RunConfig late = config("2");
    late.log.dir = folder / "new";
    EXPECT_THAT(refusal_of([&] { train(late, nowhere); }), HasSubstr("/new' is in use by process "));
    EXPECT_THAT(refusal_of([&] { train(late, nowhere, Verbosity::quiet, ""); }), HasSubstr("/new' is in use by"));
  }
  EXPECT_EQ(train(config("4"), nowhere, Verbosity::quiet, "").steps, 4);
  std::fclose(nowhere);
}

}  // namespace
}  // namespace stretto
