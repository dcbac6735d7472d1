#include "stretto/program/overlap/interleave.h"

#include <gmock/gmock.h>

#include "support/property.h"

namespace stretto {
namespace {
using testing::ElementsAre;

IdVector<WorkId, Work> list(std::initializer_list<Work> all) { return IdVector<WorkId, Work>(std::vector<Work>(all)); }
std::vector<int> order(const IdVector<WorkId, Work>& work) {
  std::vector<int> numbers;
  for (WorkId w : interleave(work).order) numbers.push_back(static_cast<int>(w.value));
  return numbers;
}

TEST(Interleave, FillsTheTimeOfACollective) {
  EXPECT_THAT(order(list({{.seconds = 2},
                          {.seconds = 3, .link = 0, .after = {WorkId(0)}},
                          {.seconds = 1, .after = {WorkId(1)}},
                          {.seconds = 3}})),
              ElementsAre(0, 1, 3, 2));
}

TEST(Interleave, KeepsTheOrderOfAChain) {
  EXPECT_THAT(
      order(list(
          {{.seconds = 1}, {.seconds = 1, .link = 0, .after = {WorkId(0)}}, {.seconds = 1, .after = {WorkId(1)}}})),
      ElementsAre(0, 1, 2));
}

// The short one is sent away, the long one is not.
TEST(Interleave, WhatAnotherActorWaitsForComesFirst) {
  EXPECT_THAT(order(list({{.seconds = 9}, {.seconds = 1}, {.urgent = true, .after = {WorkId(1)}}})),
              ElementsAre(1, 2, 0));
}

// Of two that are sent away, first the one with which the other actor has more to do.
TEST(Interleave, WhatAnotherActorGoesOnWithLongerComesFirst) {
  const auto second = [](double then) {
    return order(list({{.seconds = 2},
                       {.seconds = 1},
                       {.urgent = true, .after = {WorkId(0)}},
                       {.urgent = true, .then = then, .after = {WorkId(1)}}}));
  };
  EXPECT_THAT(second(0), ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(second(5), ElementsAre(1, 3, 0, 2));
}

// Without the link's queue the second collective would end first and its reader come before the other's.
TEST(Interleave, CollectivesOfALinkFollowEachOther) {
  const auto two = [](std::uint32_t second) {
    return order(list({{.seconds = 5, .link = 0},
                       {.seconds = 1, .link = second},
                       {.seconds = 1, .after = {WorkId(0)}},
                       {.seconds = 1, .after = {WorkId(1)}}}));
  };
  EXPECT_THAT(two(0), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(two(1), ElementsAre(0, 1, 3, 2));
}

// What waits for a message comes after what does not.
TEST(Interleave, MessagesComeWhenTheyCome) {
  const Interleaved late =
      interleave(list({{.ready = 5}, {.seconds = 1, .after = {WorkId(0)}}, {.seconds = 3}, {.seconds = 4}}));
  EXPECT_THAT(late.order, ElementsAre(WorkId(3), WorkId(2), WorkId(0), WorkId(1)));
  EXPECT_EQ(late.seconds, 8);
  const Interleaved waited = interleave(list({{.ready = 5}, {.seconds = 1, .after = {WorkId(0)}}, {.seconds = 3}}));
  EXPECT_THAT(waited.order, ElementsAre(WorkId(2), WorkId(0), WorkId(1)));
  EXPECT_EQ(waited.ends[WorkId(1)], 6);
}

TEST(Interleave, TurnsKeepTheirOrder) {
  EXPECT_THAT(order(list({{.seconds = 9, .turn = 1}, {.seconds = 1, .turn = 0}})), ElementsAre(1, 0));
}

TEST(Interleave, EverythingOnceAndAfterWhatItNeeds) {
  EXPECT_TRUE(holds("an order of all work that breaks no dependency", 500, [] {
    IdVector<WorkId, Work> work;
    const int n = *rc::gen::inRange(0, 40);
    for (int i = 0; i < n; ++i) {
      Work w{.seconds = *rc::gen::inRange(0, 5) * 1.0, .urgent = *rc::gen::inRange(0, 8) == 0};
      if (*rc::gen::inRange(0, 3) == 0) w.link = *rc::gen::inRange(0, 2);
      for (int k = 0; i > 0 && k < *rc::gen::inRange(0, 3); ++k) w.after.push_back(WorkId(*rc::gen::inRange(0, i)));
      work.push_back(w);
    }
    const std::vector<WorkId> all = interleave(work).order;
    RC_ASSERT(all.size() == work.size());
    IdVector<WorkId, char> done(work.size(), 0);
    for (WorkId w : all) {
      RC_ASSERT(!done[w]);
      for (WorkId before : work[w].after) RC_ASSERT(done[before]);
      done[w] = 1;
    }
  }));
}

}  // namespace
}  // namespace stretto
