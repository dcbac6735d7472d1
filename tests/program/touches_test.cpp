#include "stretto/program/touches.h"

#include <gmock/gmock.h>

#include <random>
#include <set>

namespace stretto {
namespace {
using testing::ElementsAre;

Ref ref(i64 start, std::vector<i64> sizes, std::vector<i64> strides) {
  Ref r{.buffer = BufferId(0), .start = start, .view = {.dtype = f32}};
  for (std::size_t i = 0; i < sizes.size(); ++i) r.view.dims.push_back(DimId(i));
  r.view.sizes = std::move(sizes), r.view.strides = std::move(strides);
  return r;
}

TEST(Spans, OfAContiguousViewAreOne) {
  EXPECT_THAT(spans_of(ref(8, {2, 3}, {3, 1})), ElementsAre(ByteSpan{8, 32}));
  EXPECT_THAT(spans_of(ref(8, {3, 2}, {1, 3})), ElementsAre(ByteSpan{8, 32})) << "in whatever order";
  EXPECT_THAT(spans_of(ref(0, {5, 2}, {0, 1})), ElementsAre(ByteSpan{0, 8})) << "broadcast";
  EXPECT_THAT(spans_of(ref(4, {}, {})), ElementsAre(ByteSpan{4, 8}));
}

TEST(Spans, OfAStripeAreOnePerRank) {
  const ByteSpans first = spans_of(ref(0, {2, 2, 3}, {12, 3, 1})), second = spans_of(ref(24, {2, 2, 3}, {12, 3, 1}));
  EXPECT_THAT(first, ElementsAre(ByteSpan{0, 24}, ByteSpan{48, 72}));
  EXPECT_THAT(second, ElementsAre(ByteSpan{24, 48}, ByteSpan{72, 96}));
  EXPECT_FALSE(meet(first, second));
  EXPECT_TRUE(meet(first, everything));
  EXPECT_TRUE(covers(everything, first));
  EXPECT_FALSE(covers(first, second));
}

TEST(Spans, OfVeryManyPiecesAreTheirHull) {
  EXPECT_THAT(spans_of(ref(0, {5000, 1}, {2, 1})), ElementsAre(ByteSpan{0, 4 * (2 * 4999 + 1)}));
}

// Against the set of all bytes.
TEST(Spans, AreTheElementsOfAnyView) {
  std::mt19937 random(3);
  const auto bytes_of = [](const Ref& r) {
    std::set<u64> all{u64(r.start) / 4};
    for (std::size_t d = 0; d < r.view.sizes.size(); ++d) {
      std::set<u64> more;
      for (u64 x : all)
        for (i64 i = 0; i < r.view.sizes[d]; ++i) more.insert(x + u64(i * r.view.strides[d]));
      all = std::move(more);
    }
    return all;
  };
  const auto any = [&] {
    std::vector<i64> sizes, strides;
    for (std::size_t d = random() % 4; d-- > 0;) sizes.push_back(1 + random() % 4), strides.push_back(random() % 9);
    return ref(i64(random() % 10) * 4, sizes, strides);
  };
  for (int i = 0; i < 2000; ++i) {
    const Ref a = any(), b = any();
    const std::set<u64> x = bytes_of(a), y = bytes_of(b);
    std::set<u64> seen;
    for (const ByteSpan& s : spans_of(a))
      for (u64 at = s.from; at < s.to; at += 4) EXPECT_TRUE(seen.insert(at / 4).second);
    EXPECT_EQ(seen, x);
    const bool common = std::any_of(x.begin(), x.end(), [&](u64 at) { return y.contains(at); });
    EXPECT_EQ(meet(spans_of(a), spans_of(b)), common);
    EXPECT_EQ(covers(spans_of(a), spans_of(b)), std::includes(x.begin(), x.end(), y.begin(), y.end()));
  }
}

}  // namespace
}  // namespace stretto
