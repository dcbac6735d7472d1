#include "stretto/launch/inner/stream.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stretto/base/error.h"
#include "stretto/launch/inner/system.h"
#include "support/files.h"

namespace stretto {
namespace {

using test::Folder;
using test::text_of;

TEST(Stream, WritesWholeLinesToLogAndConsole) {
  const Folder folder;
  const Fd log = open_log(folder / "log", O_APPEND);
  Pipe pipe, shown;
  Screen screen(shown.in.get());
  Stream stream(std::move(pipe.out), &screen, "[3] ", log);
  ASSERT_EQ(write(pipe.in.get(), "one\ntwo", 7), 7);
  stream.read_some();
  EXPECT_EQ(text_of(folder / "log"), "one\n");
  pipe.in.close();
  stream.read_rest();
  EXPECT_EQ(text_of(folder / "log"), "one\ntwo\n");
  EXPECT_EQ(stream.last_line(), "two");
  EXPECT_FALSE(stream.fd());
  screen.write_rest();
  char bytes[100];
  EXPECT_EQ(std::string(bytes, std::size_t(read(shown.out.get(), bytes, sizeof bytes))), "[3] one\n[3] two\n");
}

TEST(Stream, WaitsForAConsoleThatStandsStill) {
  const Folder folder;
  const Fd log = open_log(folder / "log", O_APPEND);
  Pipe pipe, shown;
  Screen screen(shown.in.get());
  const Stream stream(std::move(pipe.out), &screen, "", log);
  EXPECT_TRUE(stream.fd());
  screen.put(std::string(2 << 20, 'x'));
  EXPECT_FALSE(stream.fd()) << "it would grow for ever";
  shown.out.close();
  signal(SIGPIPE, SIG_IGN);
  screen.write_some();
  EXPECT_FALSE(screen.fd()) << "nobody reads it any more";
  EXPECT_TRUE(stream.fd());
}

TEST(Stream, WhatIsLostIsKnown) {
  const Fd full(open("/dev/full", O_WRONLY));
  Screen screen(full.get());
  screen.put("a result\n");
  screen.write_rest();
  EXPECT_EQ(screen.lost(), std::errc::no_space_on_device);
}

// Whoever can write into the directory could have other files written to.
TEST(Log, IsNoLinkAndNoPipe) {
  const Folder folder;
  folder.write("other", "mine\n");
  ASSERT_EQ(symlink((folder / "other").c_str(), (folder / "rank-0.log").c_str()), 0);
  EXPECT_THROW(open_log(folder / "rank-0.log", O_APPEND), Error);
  EXPECT_THROW(open_log(folder / "rank-0.log", O_TRUNC), Error);
  EXPECT_EQ(text_of(folder / "other"), "mine\n");
  ASSERT_EQ(mkfifo((folder / "rank-1.log").c_str(), 0600), 0);
  EXPECT_THROW(open_log(folder / "rank-1.log", O_APPEND), Error);
}

}  // namespace
}  // namespace stretto
