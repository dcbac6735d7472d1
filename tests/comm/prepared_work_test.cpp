#include "stretto/comm/inner/prepared_work.h"

#include <gmock/gmock.h>

#include "support/message.h"

namespace stretto {
namespace {

using testing::HasSubstr;

CollectiveShape sum_of(std::vector<i64> sizes, std::vector<i64> strides, int members = 2) {
  return {.members = members, .axes = {"data"}, .sizes = sizes, .in_strides = strides, .out_strides = strides};
}

TEST(PreparedWork, AnEqualShapeGetsTheSameNumber) {
  PreparedWork prepared(2);
  const std::uint32_t whole = prepared.add(sum_of({4, 8}, {8, 1}));  // one run of 32, once its dims are merged
  const std::uint32_t flat = prepared.add(sum_of({32}, {1}));
  EXPECT_NE(whole, flat);
  EXPECT_EQ(prepared.add(sum_of({4, 8}, {8, 1})), whole);
  EXPECT_EQ(prepared.add(sum_of({32}, {1})), flat);
  EXPECT_EQ(prepared.shape(whole), sum_of({4, 8}, {8, 1}));
  EXPECT_EQ(prepared.work(whole).bytes(), prepared.work(flat).bytes());
}

TEST(PreparedWork, OtherMembersAreRefused) {
  PreparedWork prepared(2);
  EXPECT_THAT(refusal_of([&] { prepared.add(sum_of({4}, {1}, 3)); }), HasSubstr("is for 3 members, the group has 2"));
}

TEST(PreparedWork, NothingAtAllIsSmall) {
  EXPECT_TRUE(CollectiveWork(sum_of({0}, {1})).small());
  EXPECT_TRUE(CollectiveWork(sum_of({1000}, {1})).small());
  EXPECT_FALSE(CollectiveWork(sum_of({1 << 20}, {1})).small());
}

}  // namespace
}  // namespace stretto
