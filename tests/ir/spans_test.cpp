#include "stretto/ir/spans.h"

#include <gmock/gmock.h>

#include <random>
#include <set>

namespace stretto {
namespace {
using testing::ElementsAre;

View view(std::vector<i64> sizes, std::vector<i64> strides) {
  View v{.dtype = f32};
  for (std::size_t i = 0; i < sizes.size(); ++i) v.dims.push_back(DimId(i));
  v.sizes = std::move(sizes), v.strides = std::move(strides);
  return v;
}

TEST(Spans, OfAContiguousViewAreOne) {
  EXPECT_THAT(spans_of(view({2, 3}, {3, 1}), 8), ElementsAre(ByteSpan{8, 32}));
  EXPECT_THAT(spans_of(view({3, 2}, {1, 3}), 8), ElementsAre(ByteSpan{8, 32})) << "in whatever order";
  EXPECT_THAT(spans_of(view({5, 2}, {0, 1})), ElementsAre(ByteSpan{0, 8})) << "broadcast";
  EXPECT_THAT(spans_of(view({}, {}), 4), ElementsAre(ByteSpan{4, 8}));
}

TEST(Spans, OfAStripeAreOnePerRank) {
  const ByteSpans first = spans_of(view({2, 2, 3}, {12, 3, 1})), second = spans_of(view({2, 2, 3}, {12, 3, 1}), 24);
  EXPECT_THAT(first, ElementsAre(ByteSpan{0, 24}, ByteSpan{48, 72}));
  EXPECT_THAT(second, ElementsAre(ByteSpan{24, 48}, ByteSpan{72, 96}));
  EXPECT_FALSE(meet(first, second));
  EXPECT_TRUE(meet(first, everything));
  EXPECT_TRUE(covers(everything, first));
  EXPECT_FALSE(covers(first, second));
}

TEST(Spans, OfVeryManyPiecesAreTheirHull) {
  EXPECT_THAT(spans_of(view({5000, 1}, {2, 1})), ElementsAre(ByteSpan{0, 4 * (2 * 4999 + 1)}));
}

// Against the set of all elements.
TEST(Spans, AreTheElementsOfAnyView) {
  std::mt19937 random(3);
  const auto elements_of = [](const View& v, u64 start) {
    std::set<u64> all{start / 4};
    for (std::size_t d = 0; d < v.sizes.size(); ++d) {
      std::set<u64> more;
      for (u64 x : all)
        for (i64 i = 0; i < v.sizes[d]; ++i) more.insert(x + u64(i * v.strides[d]));
      all = std::move(more);
    }
    return all;
  };
  const auto any = [&] {
    std::vector<i64> sizes, strides;
    for (std::size_t d = random() % 4; d-- > 0;) sizes.push_back(1 + random() % 4), strides.push_back(random() % 9);
    return view(sizes, strides);
  };
  for (int i = 0; i < 2000; ++i) {
    const View a = any(), b = any();
    const u64 at_a = random() % 10 * 4, at_b = random() % 10 * 4;
    const std::set<u64> x = elements_of(a, at_a), y = elements_of(b, at_b);
    const ByteSpans of_a = spans_of(a, at_a), of_b = spans_of(b, at_b);
    std::set<u64> seen;
    for (const ByteSpan& s : of_a)
      for (u64 at = s.from; at < s.to; at += 4) EXPECT_TRUE(seen.insert(at / 4).second);
    EXPECT_EQ(seen, x);
    const bool common = std::any_of(x.begin(), x.end(), [&](u64 at) { return y.contains(at); });
    EXPECT_EQ(meet(of_a, of_b), common);
    EXPECT_EQ(covers(of_a, of_b), std::includes(x.begin(), x.end(), y.begin(), y.end()));
  }
}

}  // namespace
}  // namespace stretto
