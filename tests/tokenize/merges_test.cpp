#include "stretto/tokenize/inner/merges.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <algorithm>

namespace stretto {
namespace {

using Ids = std::vector<std::int32_t>;

// The definition: the pair of the lowest rank, the leftmost of them, again and again.
Ids merged_slowly(const Merges& merges, Ids ids) {
  while (true) {
    std::size_t best = ids.size();
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto turn = merges.find(ids[i], ids[i + 1]).turn;
      if (turn.comes() && (best == ids.size() || turn < merges.find(ids[best], ids[best + 1]).turn)) best = i;
    }
    if (best == ids.size()) return ids;
    ids[best] = merges.find(ids[best], ids[best + 1]).id;
    ids.erase(ids.begin() + std::ptrdiff_t(best) + 1);
  }
}

TEST(Merges, ShortAndLongWordsFollowTheDefinition) {
  EXPECT_TRUE(rc::check([] {
    Merges merges;
    std::int32_t next = *rc::gen::inRange(1, 4);  // letters
    const std::int32_t letters = next;
    for (std::uint32_t rank = 0, n = *rc::gen::inRange<std::uint32_t>(0, 12); rank < n; ++rank) {
      const auto left = *rc::gen::inRange(0, next), right = *rc::gen::inRange(0, next);
      if (!merges.find(left, right).turn.comes()) merges.add(left, right, rank, next++);
    }
    const auto length = *rc::gen::element<std::size_t>(0, 1, 2, 5, 20, 47, 48, 49, 130);
    const Ids word = *rc::gen::container<Ids>(length, rc::gen::inRange(0, letters));
    Ids ids{7, 7};  // what stands before is left alone
    ids.insert(ids.end(), word.begin(), word.end());
    merges.apply(ids, 2);
    Ids expected{7, 7};
    for (const auto id : merged_slowly(merges, word)) expected.push_back(id);
    RC_ASSERT(ids == expected);
  }));
}

TEST(Merges, ManyPairsAreFound) {
  Merges merges;
  merges.reserve(10);
  for (int i = 0; i < 5000; ++i) merges.add(i, i * 7 % 1000, std::uint32_t(i), i + 1);
  EXPECT_EQ(merges.size(), 5000u);
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(merges.find(i, i * 7 % 1000).id, i + 1);
  EXPECT_FALSE(merges.find(1, 8).turn.comes());
  merges.add(0, 0, 9, 99);  // again: the last wins
  EXPECT_EQ(merges.find(0, 0).id, 99);
  EXPECT_EQ(merges.size(), 5000u);
}

TEST(Merges, AWordOfAMillionLettersTakesNoTime) {
  Merges merges;
  merges.add(0, 0, 0, 1);
  merges.add(1, 1, 1, 2);
  Ids ids(1000001, 0);
  merges.apply(ids, 0);
  EXPECT_EQ(ids.size(), 250001u);
  EXPECT_EQ(ids.back(), 0);
}

}  // namespace
}  // namespace stretto
