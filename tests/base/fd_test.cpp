#include "stretto/base/fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

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

}  // namespace
}  // namespace stretto
