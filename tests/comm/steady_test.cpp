// After the first round a group allocates nothing.
#include <gtest/gtest.h>

#include "plain_collective.h"
#include "stretto/comm/threads/thread_group.h"
#include "stretto/comm/wiring.h"
#include "support/counted_new.h"

namespace stretto {
namespace {

void expect_steady(CollectiveGroup& group, int members) {
  for (CollectiveKind kind : test::all_kinds)
    for (i64 size : {1, 30000}) {
      test::Plain p(test::dense(kind, f32, members, {size}), 1);
      const std::uint32_t what = group.prepare(p.shape);
      std::vector<u64> tickets(members);
      const long before = allocations;
      EXPECT_GT(before, 0);
      for (int round = 0; round < 20; ++round) {
        for (int m = 0; m < members; ++m) tickets[m] = group.start(m, what, p.in(m), p.out(m));
        for (int m = 0; m < members; ++m) group.progress(m, tickets[m]);
        for (int m = 0; m < members; ++m) group.wait(m, tickets[m]);
      }
      EXPECT_EQ(allocations, before) << p.shape.str();
      EXPECT_TRUE(p.right());
    }
}

TEST(Steady, NoRoundAllocates) {
  ThreadGroup group(5);
  expect_steady(group, 5);
}

TEST(Steady, NoRoundOverEmulatedLinksAllocates) {
  const auto wires = emulated_wiring(thread_wiring(0), {.links = equal_links({.latency = 1e-6})});
  expect_steady(*wires->group({0, 1, 2, 3, 4}, 0, 16), 5);
}

}  // namespace
}  // namespace stretto
