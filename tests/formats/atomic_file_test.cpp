#include "stretto/formats/atomic_file.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <fstream>

#include "stretto/formats/atomic_directory.h"
#include "stretto/formats/mapped_file.h"
#include "support/files.h"
#include "support/message.h"

namespace stretto {
namespace {

using test::Folder;
using testing::HasSubstr;
namespace fs = std::filesystem;

std::size_t files_in(const fs::path& directory) {
  return std::size_t(std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

TEST(AtomicFile, AppearsAtCommitOnly) {
  Folder dir;
  {
    AtomicFile file(dir / "a");
    file.write("one ");
    file.write("two");
    EXPECT_FALSE(fs::exists(dir / "a"));
    file.commit();
  }
  EXPECT_EQ(MappedFile(dir / "a").text(), "one two");
  EXPECT_EQ(files_in(dir.str()), 1u);
}

TEST(AtomicFile, WithoutCommitTheOldFileStays) {
  Folder dir;
  write_file(dir / "a", "old");
  { AtomicFile(dir / "a").write("new"); }
  EXPECT_EQ(MappedFile(dir / "a").text(), "old");
  EXPECT_EQ(files_in(dir.str()), 1u);
}

TEST(AtomicFile, AfterASignalNothingIsLeft) {
  Folder dir;
  const std::string much(200'000, 'a');
  {
    const InterruptGuard guard;
    AtomicFile file(dir / "a");
    AtomicDirectory directory(dir / "b");
    file.write(much);
    write_file(directory.directory() / "c", "text");
    ::raise(SIGTERM);
    EXPECT_THROW(file.write(much), Interrupted);
    EXPECT_THROW(write_file(directory.directory() / "d", "text"), Interrupted);
  }
  EXPECT_EQ(files_in(dir.str()), 0u);
  write_file(dir / "a", "the next one is not concerned");
}

TEST(AtomicFileDeathTest, ASignalEndsWhatWritesNothing) {
  Folder dir;
  const auto while_idle = [] {
    const InterruptGuard guard;
    ::raise(SIGTERM);
  };
  const auto twice = [&] {
    const InterruptGuard guard;
    const AtomicFile file(dir / "a");
    ::raise(SIGINT);
    ::raise(SIGTERM);
  };
  EXPECT_EXIT(while_idle(), testing::KilledBySignal(SIGTERM), "");
  EXPECT_EXIT(twice(), testing::KilledBySignal(SIGTERM), "");
  EXPECT_EXIT(Interrupted{SIGINT}.end(), testing::KilledBySignal(SIGINT), "");
}

TEST(AtomicFile, LargeAndSmallWritesKeepTheirOrder) {
  Folder dir;
  std::string expected;
  AtomicFile file(dir / "a");
  for (int i = 0; i < 40; ++i) {
    const std::string part(std::size_t(i % 4 == 3 ? 100'000 : i * 37), char('a' + i % 26));
    file.write(part);
    expected += part;
  }
  const std::string patch = "PATCH";
  file.write_at(70'000, std::as_bytes(std::span(patch)));
  expected.replace(70'000, 5, patch);
  file.commit();
  EXPECT_EQ(MappedFile(dir / "a").text(), expected);
}

// A file size limit makes write() fail half-way, as a full disk does.
TEST(AtomicFile, AFailedWriteLeavesNothingBehind) {
  Folder dir;
  write_file(dir / "a", "old");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 150'000;
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string message = refusal_of([&] { write_file(dir / "a", std::string(400'000, 'x')); });
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_THAT(message, HasSubstr("a] cannot be written: File too large"));
  EXPECT_EQ(MappedFile(dir / "a").text(), "old");
  EXPECT_EQ(files_in(dir.str()), 1u);
}

TEST(AtomicFile, NamesWhatIsWrong) {
  Folder dir;
  EXPECT_THAT(refusal_of([&] { AtomicFile file(dir / "none/a"); }),
              HasSubstr("none/a] cannot be created: there is no directory"));
  write_file(dir / "f", "");
  EXPECT_THAT(refusal_of([&] { AtomicFile file(dir / "f/a"); }), HasSubstr("f/a] cannot be created: Not a directory"));
  fs::create_directory(dir / "d");
  EXPECT_THAT(refusal_of([&] { write_file(dir / "d", "x"); }),
              HasSubstr("d] is a directory, not a file; hint: name a file in it"));
  EXPECT_EQ(files_in(dir.str()), 2u);
}

TEST(MappedFile, ReadsEmptyAndNamesTheMissing) {
  Folder dir;
  write_file(dir / "empty", "");
  EXPECT_EQ(MappedFile(dir / "empty").bytes().size(), 0u);
  EXPECT_THAT(refusal_of([&] { MappedFile file(dir / "none"); }),
              HasSubstr("none] cannot be opened: No such file or directory"));
  EXPECT_THAT(refusal_of([&] { MappedFile file(dir.str()); }), HasSubstr("is a directory, not a file"));
  EXPECT_THAT(refusal_of([&] { MappedFile file("/dev/zero"); }), HasSubstr("is a device, not a file"));
  ASSERT_EQ(mkfifo((dir / "pipe").c_str(), 0600), 0);  // nobody will ever write to it
  EXPECT_THAT(refusal_of([&] { MappedFile file(dir / "pipe"); }), HasSubstr("is a pipe, not a file"));
}

TEST(MappedFile, MovesItsBytes) {
  Folder dir;
  write_file(dir / "a", "abc");
  write_file(dir / "b", "defg");
  MappedFile one(dir / "a"), two(std::move(one));
  EXPECT_EQ(two.text(), "abc");
  two = MappedFile(dir / "b");
  EXPECT_EQ(two.text(), "defg");
}

}  // namespace
}  // namespace stretto
