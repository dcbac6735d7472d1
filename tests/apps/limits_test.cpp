// Resources that the system does not give: every command ends, with a message that says what to raise. No command takes
// longer than a minute, a hang is code 124.
#include <gmock/gmock.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <filesystem>

#include "stretto/checkpoint/checkpoint.h"
#include "support/child.h"
#include "support/command.h"
#include "support/files.h"

namespace stretto::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class Limits : public testing::Test {
 protected:
  Limits() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip_ = "the sanitizer needs more than any of these limits";
#endif
    folder_.write("text.txt", std::string(20000, 'x'));
    fs::permissions(folder_.str(), fs::perms(0777));
  }
  void SetUp() override {
    if (!skip_.empty()) GTEST_SKIP() << skip_;
  }

  static std::string train(const std::string& more) {
    return "timeout 60 '" + binaries() +
           "/stretto' train --data.path=text.txt --model.layers=2 --model.width=32 --model.heads=2 --model.context=32 "
           "--train.batch=8 --train.microbatches=4 --train.steps=3 " +
           more;
  }
  Result limited(const std::string& limit, const std::string& command) const {
    return shell("ulimit " + limit + "\n" + command, folder_.str());
  }
  // As a user of whom there are no other processes.
  Result as_nobody(const std::string& commands) const {
    folder_.write("commands", commands);
    fs::permissions(folder_ / "commands", fs::perms(0755));
    return shell("setpriv --reuid 61234 --regid 61234 --clear-groups bash ./commands", folder_.str());
  }

  Folder folder_;
  std::string skip_;
};

// Kilobytes, from what the program itself does not fit in to what everything does.
TEST_F(Limits, AddressSpace) {
  int refused = 0, trained = 0;
  for (const int most : {20000, 40000, 60000, 80000, 100000, 300000}) {
    const std::string dir = "run" + std::to_string(most);
    const Result r = limited("-v " + std::to_string(most), train("--parallel.data=2 --log.dir=" + dir));
    if (r.code == 0) {
      ++trained;
      continue;
    }
    ++refused;
    EXPECT_THAT(r.code, AnyOf(1, 3, 127)) << most << r.out << r.error;
    EXPECT_THAT(r.error, AnyOf(HasSubstr("[memory] "), HasSubstr("there is no memory left; hint: "),
                               HasSubstr("[threads] "), HasSubstr("shared libraries")))
        << most;
    EXPECT_THAT(r.error, Not(HasSubstr("[internal]"))) << most;
  }
  EXPECT_GE(refused, 3);
  EXPECT_GE(trained, 1);
  EXPECT_EQ(limited("-v 60000", "timeout 60 '" + binaries() + "/stretto' --version").code, 0);
}

TEST_F(Limits, Threads) {
  if (!can_become_nobody()) GTEST_SKIP() << "only root can become a user without rights";
  int refused = 0;
  for (const int most : {4, 5, 6, 7, 8}) {
    const Result r = as_nobody("ulimit -u " + std::to_string(most) + "\n" +
                               train("--train.batch=16 --parallel.data=4 --log.dir=run" + std::to_string(most)));
    if (r.code == 0) continue;
    ++refused;
    EXPECT_EQ(r.code, 3) << most << r.out << r.error;
    EXPECT_THAT(r.error, AllOf(HasSubstr("[threads] thread "), HasSubstr("ulimit -u"))) << most;
  }
  EXPECT_GE(refused, 2);
}

TEST_F(Limits, SizeOfFiles) {
  Result r = limited("-f 8", train("--train.steps=80 --checkpoint.keep=0 --log.dir=run"));
  EXPECT_EQ(r.code, 3) << r.out << r.error;
  EXPECT_THAT(r.out, AllOf(HasSubstr("] cannot be written: File too large; training goes on"),
                           HasSubstr("done: 80 of 80 steps")));
  EXPECT_THAT(r.error, HasSubstr("File too large"));
  const std::string metrics = text_of(folder_ / "run/metrics.jsonl");
  EXPECT_LE(metrics.size(), 8192u);
  EXPECT_TRUE(metrics.ends_with("}\n"));
  r = limited("-f 64", train("--log.dir=kept"));
  EXPECT_EQ(r.code, 3) << r.out << r.error;
  EXPECT_THAT(r.error, AllOf(HasSubstr("the checkpoint of step 3 could not be written"), HasSubstr("File too large"),
                             HasSubstr("ulimit -f")));
}

TEST_F(Limits, OpenFiles) {
  for (const int most : {5, 6, 8, 10, 16}) {
    const Result r = limited("-n " + std::to_string(most), train("--log.dir=run" + std::to_string(most)));
    EXPECT_THAT(r.code, AnyOf(0, 1, 3, 127)) << most << r.error;
    if (r.code != 0) {
      EXPECT_NE(r.error, "") << most;
    }
    EXPECT_THAT(r.error, Not(HasSubstr("[internal]"))) << most;
  }
}

TEST_F(Limits, Stack) {
  for (const char* most : {"64", "128", "256"}) {
    const Result r = limited(std::string("-s ") + most, train(std::string("--log.dir=run") + most));
    EXPECT_EQ(r.code, 1) << most << r.error;
    EXPECT_EQ(r.error, std::string("[stack] its limit is ") + most + (std::string(most) == "64" ? ".0" : "") +
                           " KiB, and 512 KiB are needed; hint: raise it: ulimit -s 8192\n");
  }
  const Result r = limited("-s 512", train("--parallel.pipe=2 --log.dir=run"));
  EXPECT_EQ(r.code, 0) << r.error;
}

// Room for as many checkpoints as are kept is enough, and a run goes on where there is no room for its journal.
TEST_F(Limits, Disk) {
  ASSERT_EQ(shell(train("--log.dir=measured"), folder_.str()).code, 0);
  u64 bytes = 0;
  for (const auto& f : fs::directory_iterator(folder_ / "measured/checkpoints/step-00000003"))
    bytes += (f.file_size() + 8191) / 4096 * 4096;
  const std::string checkpoints = folder_ / "run/checkpoints";
  ASSERT_EQ(shell(train("--checkpoint.keep=0 --log.dir=run"), folder_.str()).code, 0);
  fs::create_directories(checkpoints);
  if (mount("tmpfs", checkpoints.c_str(), "tmpfs", 0, ("size=" + std::to_string(3 * bytes + 8192)).c_str()) != 0)
    GTEST_SKIP() << "nothing can be mounted here";
  const Result r =
      shell(train("--train.steps=9 --checkpoint.every=1 --checkpoint.keep=3 --resume --log.dir=run"), folder_.str());
  const std::vector<fs::path> all = checkpoints_in(checkpoints);
  umount(checkpoints.c_str());
  EXPECT_EQ(r.code, 0) << r.out << r.error;
  EXPECT_THAT(r.out, Not(HasSubstr("could not be written")));
  ASSERT_GE(all.size(), 2u);
  EXPECT_EQ(all[0].filename(), "step-00000009");
}

// However long a text is, packed or not: it is tokenized while it is read.
TEST_F(Limits, MemoryOfTokenizing) {
  ASSERT_EQ(shell("yes 'some words and more' | head -c 50000000 > long.txt; gzip -1 -k long.txt", folder_.str()).code,
            0);
  const std::string tokenize =
      "timeout 60 '" + binaries() + "/stretto' data tokenize --tokenizer bytes --out long.bin ";
  for (const char* file : {"long.txt", "long.txt.gz"}) {  // a file that is mapped counts, too
    const Result r =
        limited(std::string("-v ") + (fs::path(file).extension() == ".gz" ? "120000" : "160000"), tokenize + file);
    EXPECT_EQ(r.code, 0) << file << r.error;
    EXPECT_EQ(fs::file_size(folder_ / "long.bin"), 100'000'000u) << file;
  }
}

TEST_F(Limits, AFileOfTheDataIsCut) {
  folder_.write("long.txt", std::string(1 << 20, 'x'));
  const Result r = shell(
      "(sleep 1.5; truncate -s 10 long.txt) &\n" + train("--train.steps=100000 --log.dir=run --data.path=long.txt"),
      folder_.str());
  EXPECT_EQ(r.code, 3) << r.error;
  EXPECT_THAT(r.error, HasSubstr("[long.txt] has been cut off"));
  EXPECT_THAT(r.error, HasSubstr("stretto train --resume=run\n"));
}

TEST_F(Limits, ALogThatIsAPipe) {
  ASSERT_EQ(shell(train("--train.steps=1 --log.dir=run"), folder_.str()).code, 0);
  fs::remove(folder_ / "run/log.txt");
  ASSERT_EQ(mkfifo((folder_ / "run/log.txt").c_str(), 0600), 0);
  const Result r = shell(train("--resume --log.dir=run"), folder_.str());
  EXPECT_EQ(r.code, 0) << r.error;
  EXPECT_THAT(r.out, HasSubstr("note: run/log.txt cannot be written; the run goes on without it"));
}

}  // namespace
}  // namespace stretto::test
