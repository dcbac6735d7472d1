#include "stretto/base/threads.h"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "support/child.h"
#include "support/message.h"

namespace stretto {
namespace {

using testing::HasSubstr;

// Threads that wait until they are told, as workers do.
struct Waiting {
  std::atomic<bool> quit{false};
  std::atomic<int> ended{0};
  Threads threads{[this] { quit = true, quit.notify_all(); }};
  void start(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      threads.start(
          [this] {
            quit.wait(false);
            ++ended;
          },
          count);
  }
};

TEST(Threads, AreAskedToEndAndJoined) {
  Waiting w;
  w.start(3);
  w.threads.end();
  EXPECT_EQ(w.ended, 3);
  EXPECT_TRUE(w.threads.empty());
}

TEST(Threads, RepeatedCallsGoOnUntilTheEnd) {
  std::atomic<int> calls = 0;
  {
    Repeated often, once;
    often.start(1e-3, [&] { ++calls; });
    while (calls < 3) std::this_thread::yield();
    often.end();
    once.start(1e6, [&] { calls = 100; });
    while (calls < 100) std::this_thread::yield();
  }  // whoever waits for the next call is woken
  EXPECT_EQ(calls, 100) << "none after the end";
}

TEST(Threads, OneThatCannotBeMadeEndsTheOthers) {
  if (!test::can_become_nobody()) GTEST_SKIP() << "only root can become a user without rights";
  const test::Ended e = test::in_child([] {
    test::become_nobody();
    test::limit(RLIMIT_NPROC, 6);  // this process is one of them
    Waiting w;
    std::fprintf(stderr, "%s\n", refusal_of([&] { w.start(20); }).c_str());
    std::fprintf(stderr, "%d ended\n", int(w.ended));
  });
  EXPECT_EQ(e.code, 0) << e.error;
  EXPECT_THAT(e.error, HasSubstr("[threads] thread 6 of 20 cannot be made: Resource temporarily unavailable; hint: "));
  EXPECT_THAT(e.error, HasSubstr("ulimit -u"));
  EXPECT_THAT(e.error, HasSubstr("\n5 ended\n"));
}

TEST(Threads, WhatGoesOnInTheBackgroundIsDoneHereWithoutThem) {
  EXPECT_EQ(in_background([] { return 7; }).get(), 7);
  EXPECT_THROW(in_background([]() -> int { throw Error("x", "y"); }).get(), Error);
  if (!test::can_become_nobody()) GTEST_SKIP() << "only root can become a user without rights";
  const test::Ended e = test::in_child([] {
    test::become_nobody();
    test::limit(RLIMIT_NPROC, 1);
    const std::thread::id here = std::this_thread::get_id();
    if (in_background([] { return std::this_thread::get_id(); }).get() != here) std::fprintf(stderr, "elsewhere\n");
    std::fprintf(stderr, "%s\n", refusal_of([] { in_background([] { throw Error("x", "y"); }).get(); }).c_str());
  });
  EXPECT_EQ(e.code, 0);
  EXPECT_EQ(e.error, "[x] y\n");
}

// Threads that start meanwhile stay on these cores; this one goes back to where it could run before.
TEST(Threads, RunOnTheCoresTheyAreGiven) {
  const std::vector<int> all = usable_cores(), last{all.back()};
  std::vector<int> here, there;
  {
    const OnCores only(last);
    here = usable_cores();
    Threads threads;
    threads.start([&] { there = usable_cores(); });
    threads.join();
    const OnCores anywhere({});
    EXPECT_EQ(usable_cores(), last);
  }
  EXPECT_EQ(here, last);
  EXPECT_EQ(there, last);
  EXPECT_EQ(usable_cores(), all);
}

}  // namespace
}  // namespace stretto
