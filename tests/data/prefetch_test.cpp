#include "stretto/data/prefetch.h"

#include <gmock/gmock.h>

#include <atomic>
#include <memory>

namespace stretto {
namespace {

TEST(Prefetch, GivesEveryBatchOnceInOrder) {
  for (const std::size_t ahead : {1u, 2u, 7u}) {
    Prefetch<i64> squares([](i64 i) { return i * i; }, {.first = 3, .last = 200, .ahead = ahead});
    for (i64 i = 3; i <= 200; ++i) ASSERT_EQ(squares.next(), i * i);
    EXPECT_THROW(squares.next(), Error);
  }
}

TEST(Prefetch, ReadsNoFurtherAheadThanItMay) {
  std::atomic<i64> read = 0;
  Prefetch<i64> batches([&](i64 i) { return read = i; }, {.first = 1, .last = 1000, .ahead = 3});
  for (i64 i = 1; i <= 500; ++i) {
    EXPECT_LE(read.load(), i + 2);  // this one and two after it
    EXPECT_EQ(batches.next(), i);
  }
}

TEST(Prefetch, AnErrorIsThrownByWhoAsksForThatBatch) {
  Prefetch<i64> batches(
      [](i64 i) {
        if (i == 4) throw Error("shard 7", "is broken");
        return i;
      },
      {.first = 1, .last = 10});
  for (i64 i = 1; i <= 3; ++i) EXPECT_EQ(batches.next(), i);
  for (int again = 0; again < 2; ++again) {
    try {
      batches.next();
      FAIL();
    } catch (const Error& e) {
      EXPECT_STREQ(e.what(), "[shard 7] is broken");
    }
  }
}

TEST(Prefetch, EndsAtAnyTime) {
  for (int taken = 0; taken < 6; ++taken) {
    const auto alive = std::make_shared<int>(0);
    {
      Prefetch<i64> batches([alive](i64 i) { return i; }, {.first = 1, .last = i64(1) << 60, .ahead = 2});
      for (int i = 0; i < taken; ++i) batches.next();
    }
    EXPECT_EQ(alive.use_count(), 1);
  }
}

TEST(Prefetch, MovesWhatCannotBeCopied) {
  Prefetch<std::unique_ptr<i64>> batches([](i64 i) { return std::make_unique<i64>(i); }, {.first = 1, .last = 2});
  EXPECT_EQ(*batches.next(), 1);
  EXPECT_EQ(*batches.next(), 2);
}

}  // namespace
}  // namespace stretto
