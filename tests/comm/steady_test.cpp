// After the first round a group allocates nothing.
#include <gtest/gtest.h>

#include "plain_collective.h"
#include "stretto/comm/threads/thread_group.h"
#include "support/counted_new.h"

namespace stretto {
namespace {

TEST(Steady, NoRoundAllocates) {
  constexpr int members = 5;
  ThreadGroup group(members);
  for (CollectiveKind kind : test::all_kinds)
    for (i64 size : {1, 30000}) {
      test::Plain p(test::dense(kind, f32, members, {size}), 1);
      const std::uint32_t what = group.prepare(p.shape);
      const long before = allocations;
      EXPECT_GT(before, 0);
      for (int round = 0; round < 20; ++round) {
        u64 tickets[members];
        for (int m = 0; m < members; ++m) tickets[m] = group.start(m, what, p.in(m), p.out(m));
        for (int m = 0; m < members; ++m) group.progress(m, tickets[m]);
        for (int m = 0; m < members; ++m) group.wait(m, tickets[m]);
      }
      EXPECT_EQ(allocations, before) << p.shape.str();
      EXPECT_TRUE(p.right());
    }
}

}  // namespace
}  // namespace stretto
