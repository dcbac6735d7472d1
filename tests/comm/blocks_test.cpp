#include "stretto/comm/mpi/blocks.h"

#include <gtest/gtest.h>

namespace stretto {
namespace {

std::byte* at(u64 address) { return reinterpret_cast<std::byte*>(address); }

TEST(Blocks, NeighboursAreMergedAndNothingIsEmpty) {
  const auto b = blocks_of({{at(64), 10}, {at(74), 6}, {at(90), 0}, {at(96), 4}});
  ASSERT_EQ(b.size(), 2u);
  EXPECT_EQ(b[0].at, at(64));
  EXPECT_EQ(b[0].bytes, 16);
  EXPECT_EQ(b[1].at, at(96));
  EXPECT_TRUE(blocks_of({}).empty());
}

TEST(Blocks, FiveGibibytesAreCounted) {
  const u64 bytes = (u64(5) << 30) + 3;
  u64 sum = 0;
  std::byte* next = at(4096);
  for (const Block& b : blocks_of({{at(4096), bytes}})) {
    EXPECT_EQ(b.at, next);
    EXPECT_GT(b.bytes, 0);
    next += b.bytes;
    sum += u64(b.bytes);
  }
  EXPECT_EQ(sum, bytes);
}

}  // namespace
}  // namespace stretto
