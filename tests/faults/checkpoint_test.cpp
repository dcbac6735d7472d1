// A save that is killed or fails at any of its steps: the checkpoint before it is there, or the new one, never less.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <map>

#include "faults/interpose.h"
#include "stretto/checkpoint/writer.h"
#include "support/files.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;
using test::FileCalls;
using test::Folder;
using testing::HasSubstr;

Snapshot sample(i64 step) {
  Snapshot s{.step = step, .config = "c", .optimizer = "adamw", .states = {"m"}};
  for (const char* name : {"x", "y", "z"}) {
    const std::vector<float> v(20000, float(step));
    s.tensors.push_back({parameter_tensor(name), Array::of<float>(v, {20000})});
  }
  s.extras = {{"tokenizer.json", "{}"}};
  return s;
}
constexpr u64 shard_bytes = 100000;  // one tensor each

bool whole(const Checkpoint& c) {
  for (const std::string& name : c.parameters()) {
    const Array a = c.parameter(name);
    for (const float v : a.as<float>())
      if (v != float(c.manifest().step)) return false;
  }
  return c.parameters().size() == 3;
}

// Runs f in a process of its own.
template <class F>
int in_child(F f) {
  const pid_t child = fork();
  if (child == 0) {
    f();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

long calls_of_a_save(int keep) {
  const Folder folder;
  write_checkpoint(folder / checkpoint_name(10), sample(10), shard_bytes);
  FileCalls::at(0, FileCalls::nothing);
  CheckpointWriter writer(folder.str(), keep, shard_bytes);
  writer.save(sample(20));
  EXPECT_EQ(writer.wait()->error, "");
  return FileCalls::count();
}

// keep = 1: the old one is removed as soon as the new one stands.
TEST(Faults, KilledAtEveryCallOfASave) {
  for (const int keep : {1, 2}) {
    const long calls = calls_of_a_save(keep);
    ASSERT_GT(calls, 20);
    int old_ones = 0, new_ones = 0;
    for (long n = 1;; ++n) {
      const Folder folder;
      write_checkpoint(folder / checkpoint_name(10), sample(10), shard_bytes);
      const int code = in_child([&] {
        FileCalls::at(n, FileCalls::kill);
        CheckpointWriter writer(folder.str(), keep, shard_bytes);
        writer.save(sample(20));
        writer.wait();
      });
      const Newest newest = newest_checkpoint(folder.str());
      ASSERT_TRUE(newest.checkpoint) << "killed at call " << n;
      EXPECT_TRUE(whole(*newest.checkpoint)) << n;
      (newest.checkpoint->manifest().step == 10 ? old_ones : new_ones) += 1;
      // The next save works and tidies up.
      CheckpointWriter writer(folder.str(), keep, shard_bytes);
      writer.save(sample(30));
      EXPECT_EQ(writer.wait()->error, "") << n;
      EXPECT_EQ(newest_checkpoint(folder.str()).checkpoint->manifest().step, 30);
      EXPECT_LE(std::distance(fs::directory_iterator(folder.str()), fs::directory_iterator()), keep) << n;
      if (code == 0) break;
      ASSERT_EQ(code, 77);
    }
    EXPECT_GT(old_ones, 20);
    EXPECT_GT(new_ones, keep == 1 ? 3 : 0);
  }
}

TEST(Faults, KilledWhileOneOfTheSameNameIsReplaced) {
  for (long n = 1;; ++n) {
    const Folder folder;
    write_checkpoint(folder / "c", sample(10), shard_bytes);
    const int code = in_child([&] {
      FileCalls::at(n, FileCalls::kill);
      write_checkpoint(folder / "c", sample(20), shard_bytes);
    });
    EXPECT_TRUE(whole(Checkpoint(folder / "c"))) << n;
    if (code == 0) break;
    ASSERT_EQ(code, 77);
  }
}

TEST(Faults, AFullDiskAtEveryCall) {
  const long calls = calls_of_a_save(2);
  std::map<int, int> failed;  // by error
  for (long n = 1; n <= calls; ++n)
    for (const int error : {ENOSPC, EIO}) {
      const Folder folder;
      write_checkpoint(folder / checkpoint_name(10), sample(10), shard_bytes);
      CheckpointWriter writer(folder.str(), 2, shard_bytes);
      FileCalls::at(n, FileCalls::fail, error);
      writer.save(sample(20));
      const Saved saved = *writer.wait();
      FileCalls::at(0, FileCalls::nothing);
      const Newest newest = newest_checkpoint(folder.str());
      ASSERT_TRUE(newest.checkpoint) << n;
      EXPECT_TRUE(whole(*newest.checkpoint));
      if (saved.error.empty()) {
        EXPECT_EQ(newest.checkpoint->manifest().step, 20) << "said to be saved at call " << n;
        continue;
      }
      ++failed[error];
      EXPECT_THAT(saved.error, HasSubstr(error == EIO ? "Input/output error" : "No space left on device"));
      EXPECT_THAT(saved.error, HasSubstr(folder.str()));
      for (const auto& entry : fs::directory_iterator(folder.str()))  // what was half written is gone
        EXPECT_TRUE(is_checkpoint(entry.path())) << entry.path() << " at call " << n;
    }
  EXPECT_GT(failed[ENOSPC], 15);
  EXPECT_GT(failed[EIO], 15);
}

TEST(Faults, ShortWritesAreGoneOnWith) {
  const Folder folder;
  FileCalls::at(1, FileCalls::shorten);
  write_checkpoint(folder / "c", sample(10), shard_bytes);
  FileCalls::at(0, FileCalls::nothing);
  EXPECT_TRUE(whole(Checkpoint(folder / "c")));
}

TEST(Faults, ALimitOnTheSizeOfFiles) {
  const Folder folder;
  write_checkpoint(folder / checkpoint_name(10), sample(10), shard_bytes);
  const int code = in_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{50000, 50000};
    setrlimit(RLIMIT_FSIZE, &limit);
    CheckpointWriter writer(folder.str(), 2, shard_bytes);
    writer.save(sample(20));
    const std::string error = writer.wait()->error;
    _exit(error.find("cannot be written: File too large") != std::string::npos ? 1 : 2);
  });
  EXPECT_EQ(code, 1);
  EXPECT_EQ(newest_checkpoint(folder.str()).checkpoint->manifest().step, 10);
}

TEST(Faults, NoMemoryIsSaid) {
  EXPECT_EQ(why(std::bad_alloc()), "there is no memory left; hint: raise the limit on it (ulimit -v)");
  EXPECT_EQ(why(Error("x", "y")), "[x] y");
}

TEST(Faults, ADirectoryThatCannotBeWrittenTo) {
  const Folder folder;
  write_checkpoint(folder / ("run/" + checkpoint_name(10)), sample(10), shard_bytes);
  const auto readable = fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read | fs::perms::others_exec;
  fs::permissions(folder.str(), fs::perms::owner_all | readable);
  fs::permissions(folder / "run", readable);
  const int code = in_child([&] {
    if (getuid() == 0 && setuid(65534) != 0) _exit(9);  // nothing stops root
    CheckpointWriter writer(folder / "run", 2, shard_bytes);
    writer.save(sample(20));
    _exit(writer.wait()->error.find("cannot be made: Permission denied") != std::string::npos ? 1 : 2);
  });
  fs::permissions(folder / "run", fs::perms::owner_all);
  EXPECT_EQ(code, 1);
  EXPECT_EQ(newest_checkpoint(folder / "run").checkpoint->manifest().step, 10);
}

}  // namespace
}  // namespace stretto
