#include "stretto/base/fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

namespace stretto {
namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST(Fd, ClosesWhatItHolds) {
  int number = 0;
  {
    const Fd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(file);
    number = file.get();
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(Fd, HasOneOwner) {
  Fd first(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int number = first.get();
  Fd second(std::move(first));
  EXPECT_FALSE(first);
  EXPECT_EQ(second.get(), number);
  first = std::move(second);
  EXPECT_FALSE(second);
  EXPECT_EQ(first.release(), number);
  EXPECT_FALSE(first);
  EXPECT_TRUE(is_open(number));
  EXPECT_EQ(::close(number), 0);
}

TEST(Fd, WhatCouldNotBeOpenedIsNone) {
  Fd file(::open("/nowhere/at/all", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(errno, ENOENT);
  EXPECT_FALSE(file);
  EXPECT_TRUE(file.close());
}

TEST(Fd, ClosesOnceAndSaysWhetherItCould) {
  Fd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ::close(file.get());
  EXPECT_FALSE(file.close());
  EXPECT_EQ(errno, EBADF);
  EXPECT_TRUE(file.close());
}

// Numbers that are each other's, or their own and closed at exec.
TEST(Fd, MovesGoToTheirNumbersAtOnce) {
  const auto device = [](int fd) {
    struct stat what{};
    fstat(fd, &what);
    return what.st_rdev;
  };
  const Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC)), zero(::open("/dev/zero", O_RDONLY | O_CLOEXEC)),
      full(::open("/dev/full", O_RDONLY | O_CLOEXEC));
  const dev_t is_null = device(null.get()), is_zero = device(zero.get()), is_full = device(full.get());
  const FdMove moves[] = {{null.get(), zero.get()}, {zero.get(), null.get()}, {full.get(), full.get()}};
  ASSERT_TRUE(move_fds(moves));
  EXPECT_EQ(device(zero.get()), is_null);
  EXPECT_EQ(device(null.get()), is_zero);
  EXPECT_EQ(device(full.get()), is_full);
  for (const Fd* fd : {&null, &zero, &full}) EXPECT_EQ(fcntl(fd->get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_FALSE(move_fds(std::vector<FdMove>{{-1, null.get()}}));
}

}  // namespace
}  // namespace stretto
