// Threads of a rank: every part is made once, by a thread of its own, what goes wrong comes out, and too few cores stop
// nothing.
#include "stretto/kernels/team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "stretto/kernels/cpu/call_parts.h"
#include "stretto/kernels/cpu/share.h"
#include "stretto/ops/input.h"
#include "stretto/ops/ops.h"
#include "support/kernel_run.h"
#include "support/message.h"

namespace stretto {
namespace {

TEST(Team, EveryPartIsMadeOnceByAThreadOfItsOwn) {
  Team team({.threads = 5, .spins = 100});
  for (int round = 0; round < 2000; ++round) {
    const int parts = 1 + round % 5;
    std::vector<int> made(5, 0);
    std::vector<std::thread::id> who(5);
    team.run(parts, [&](int part) { ++made[part], who[part] = std::this_thread::get_id(); });
    for (int part = 0; part < 5; ++part) ASSERT_EQ(made[part], part < parts ? 1 : 0);
    EXPECT_EQ(who[0], std::this_thread::get_id());
    EXPECT_EQ(std::set(who.begin(), who.begin() + parts).size(), std::size_t(parts));
  }
}

TEST(Team, WhatTheFirstPartThrowsComesOutWhenAllAreDone) {
  Team team({.threads = 4});
  std::atomic<int> done = 0;
  const auto fails = [&](int first) {
    return refusal_of([&] {
      team.run(4, [&](int part) {
        ++done;
        if (part >= first) throw Error("part", "{}", part);
      });
    });
  };
  EXPECT_EQ(fails(0), "[part] 0");
  EXPECT_EQ(fails(2), "[part] 2");
  EXPECT_EQ(done, 8);
  team.run(4, [&](int) { ++done; });
  EXPECT_EQ(done, 12);
}

TEST(Team, OnlyWhatIsWorthItIsShared) {
  const Team team({.threads = 4, .least = 1e-5}), eager({.threads = 4, .least = 0});
  EXPECT_EQ(team.worth(0), 1);
  EXPECT_EQ(team.worth(1.9e-5), 1);
  EXPECT_EQ(team.worth(3.1e-5), 3);
  EXPECT_EQ(team.worth(1), 4);
  EXPECT_EQ(eager.worth(0), 4);
  EXPECT_EQ(Team({}).worth(1), 1);
}

TEST(Team, SharesGiveScratchMessagesAndFaults) {
  Team team({.threads = 3});
  std::byte scratch[300];
  int polls = 0;
  const Now now;
  std::optional<KernelFault> fault;
  const Args args{.scratch = scratch,
                  .now = now,
                  .poll = [](void* n) { ++*static_cast<int*>(n); },
                  .poller = &polls,
                  .fault = &fault,
                  .team = &team,
                  .scratch_each = 100};
  std::vector<std::byte*> at(3);
  share(args, 3, [&](const Args& mine, int part) {
    at[part] = mine.scratch;
    mine.pause();
    mine.within(part, 1);  // all but the first find a fault
    EXPECT_EQ(mine.team, nullptr);
  });
  EXPECT_EQ(at, (std::vector{scratch, scratch + 100, scratch + 200}));
  EXPECT_EQ(polls, 1);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->value, 1);
  fault.reset();
  share(args, 3, [](const Args& mine, int) { mine.within(0, 1); });
  EXPECT_FALSE(fault);
}

// The largest dim of all results that is not summed over, in parts of nearly the same size.
TEST(CallParts, AreCutAlongDimsThatDoNotDependOnEachOther) {
  Builder b;
  const Dim rows{"rows", 10}, wide{"wide", 96};
  const Tensor x = input(b, "x", f32, {rows, wide});
  const auto parts = [&](Tensor y, int most) {
    const KernelRun run(b.graph, y.value.node, 1, KernelRun::contiguous);
    return parts_of(run.call, most);
  };
  const std::vector<CallPart> by_rows = parts(exp(x), 2);
  ASSERT_EQ(by_rows.size(), 2u);
  EXPECT_EQ(by_rows[1].call.out[0].sizes, (std::vector<i64>{5, 96}));
  EXPECT_EQ(by_rows[1].call.out[0].offsets, (std::vector<i64>{5, 0}));
  EXPECT_EQ(by_rows[1].in, std::vector<i64>{5 * 96 * 4});
  const std::vector<CallPart> by_columns = parts(exp(x), 6);  // ten rows are two each, for five threads
  ASSERT_EQ(by_columns.size(), 6u);
  EXPECT_EQ(by_columns[5].call.out[0].sizes, (std::vector<i64>{10, 16}));
  EXPECT_EQ(by_columns[5].out, std::vector<i64>{80 * 4});
  const std::vector<CallPart> normed = parts(softmax(x, wide), 6);
  ASSERT_EQ(normed.size(), 6u);
  EXPECT_EQ(normed[0].call.out[0].sizes[1], 96);
  EXPECT_EQ(parts(sum_over(x, x.type().dims), 6).size(), 0u);
  EXPECT_EQ(parts(exp(x), 1).size(), 0u);
}

}  // namespace
}  // namespace stretto
