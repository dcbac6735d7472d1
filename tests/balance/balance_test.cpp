#include "stretto/balance/balance.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "stretto/base/error.h"
#include "stretto/schedule/schedule.h"

namespace stretto {
namespace {

// An actor's load, written down from its definition.
double largest_load(const BalanceProblem& p, const std::vector<int>& stage_of) {
  std::vector<double> load(200, 0);
  for (const auto& actor_of : p.actor_of)
    for (std::size_t i = 0; i < stage_of.size(); ++i) {
      const std::size_t stage = std::size_t(stage_of[i]), actor = actor_of[StageId(stage)].value;
      load[actor] += p.seconds[p.kind.empty() ? 0 : std::size_t(p.kind[stage])][i];
      if (i + 1 == stage_of.size() || stage_of[i + 1] == stage_of[i]) continue;
      const std::size_t next = actor_of[StageId(stage + 1)].value;
      if (next == actor || p.message.empty()) continue;
      load[actor] += p.message[i], load[next] += p.message[i];
    }
  return *std::max_element(load.begin(), load.end());
}

// All cuts there are.
double brute_force(const BalanceProblem& p) {
  const std::size_t pieces = p.seconds[0].size(), stages = p.actor_of[down_pipe].size();
  double best = std::numeric_limits<double>::infinity();
  for (std::uint32_t set = 0; set < 1u << (pieces - 1); ++set) {
    if (std::size_t(__builtin_popcount(set)) != stages - 1) continue;
    std::vector<int> stage_of{0};
    for (std::size_t b = 0; b + 1 < pieces; ++b) stage_of.push_back(stage_of.back() + int(set >> b & 1));
    best = std::min(best, largest_load(p, stage_of));
  }
  return best;
}

// Whole numbers, so that sums are exact; some pieces are much dearer, some cost nothing.
BalanceProblem random_problem(const Schedule& placement, int pieces) {
  BalanceProblem p{.actor_of = placement.actor_of};
  const int kinds = *rc::gen::inRange(1, 3);
  for (int k = 0; k < kinds; ++k) {
    p.seconds.emplace_back();
    for (int i = 0; i < pieces; ++i)
      p.seconds.back().push_back(*rc::gen::weightedOneOf<int>(
          {{6, rc::gen::inRange(1, 12)}, {1, rc::gen::inRange(20, 60)}, {1, rc::gen::just(0)}}));
  }
  if (kinds > 1)
    for (std::size_t s = 0; s < p.actor_of[down_pipe].size(); ++s) p.kind.push_back(*rc::gen::inRange(0, kinds));
  if (*rc::gen::arbitrary<bool>())
    for (int i = 0; i + 1 < pieces; ++i) p.message.push_back(*rc::gen::inRange(0, 6));
  return p;
}

void expect_best(const Schedule& placement) {
  const int pieces = *rc::gen::inRange(placement.stages, 13);
  const BalanceProblem p = random_problem(placement, pieces);
  const Balance b = balance(p);
  RC_ASSERT(int(b.stage_of.size()) == pieces);  // no piece is dropped
  RC_ASSERT(b.stage_of.front() == 0 && b.stage_of.back() == placement.stages - 1);
  for (std::size_t i = 1; i < b.stage_of.size(); ++i)
    RC_ASSERT(b.stage_of[i] == b.stage_of[i - 1] || b.stage_of[i] == b.stage_of[i - 1] + 1);
  RC_ASSERT(b.exact);
  RC_ASSERT(b.largest == largest_load(p, b.stage_of));
  RC_ASSERT(b.largest == brute_force(p));
}

RC_GTEST_PROP(Balance, OneStagePerActorIsAsGoodAsTheBestOfAllCuts, ()) {
  expect_best(looped({.actors = *rc::gen::inRange(1, 9), .chunks = 1}));
}
RC_GTEST_PROP(Balance, VShapedIsAsGoodAsTheBestOfAllCuts, ()) {
  expect_best(v_shaped({.actors = *rc::gen::inRange(1, 6), .chunks = 2}));
}
RC_GTEST_PROP(Balance, BidirectionalIsAsGoodAsTheBestOfAllCuts, ()) {
  expect_best(bidirectional({.actors = *rc::gen::inRange(1, 9)}));
}
RC_GTEST_PROP(Balance, LoopedIsAsGoodAsTheBestOfAllCuts, ()) {
  const int chunks = *rc::gen::inRange(2, 5);
  expect_best(looped({.actors = *rc::gen::inRange(1, 10 / chunks + 1), .chunks = chunks}));
}
RC_GTEST_PROP(Balance, AnyPlacementIsAsGoodAsTheBestOfAllCuts, ()) {
  Schedule s{.stages = *rc::gen::inRange(1, 9)};
  s.actor_of.push_back({});
  for (int k = 0; k < s.stages; ++k) s.actor_of[down_pipe].push_back(ActorId(*rc::gen::inRange(0, 3)));
  int actors = 0;  // numbered without gaps
  std::vector<int> number(3, -1);
  for (ActorId& a : s.actor_of[down_pipe]) {
    if (number[a.value] < 0) number[a.value] = actors++;
    a = ActorId(number[a.value]);
  }
  expect_best(s);
}

// A deep model with dear ends, as a transformer's embedding and head are.
BalanceProblem deep(const Schedule& placement, int pieces) {
  BalanceProblem p{.seconds = {{1.0}}, .actor_of = placement.actor_of};
  for (int i = 1; i + 1 < pieces; ++i) p.seconds[0].push_back(i % 2 ? 4.0 : 5.5);
  p.seconds[0].push_back(9.0);
  p.message.assign(std::size_t(pieces) - 1, 0.01);
  return p;
}

TEST(Balance, IsExactForDeepModelsOnManyActors) {
  for (const Schedule& placement : {looped({.actors = 64, .chunks = 1}), looped({.actors = 128, .chunks = 1}),
                                    v_shaped({.actors = 64, .chunks = 2}), v_shaped({.actors = 8, .chunks = 2}),
                                    v_shaped({.actors = 2, .chunks = 2}), bidirectional({.actors = 64})}) {
    const BalanceProblem p = deep(placement, 194);
    const Balance b = balance(p);
    EXPECT_TRUE(b.exact) << placement.stages;
    EXPECT_EQ(int(b.stage_of.size()), 194);
    EXPECT_NEAR(b.largest, largest_load(p, b.stage_of), 1e-9);
  }
}

TEST(Balance, ManyChunksAreNearTheirBound) {
  for (int chunks : {2, 4, 8}) {
    const Balance b = balance(deep(looped({.actors = 8, .chunks = chunks}), 194));
    EXPECT_LE(b.bound, b.largest) << chunks;
    EXPECT_LE(b.largest, 1.03 * b.bound) << chunks;
  }
}

TEST(Balance, ActorsAreBalancedNotStages) {
  // Stages 0 and 3 share an actor: the dear last piece leaves room for nothing beside the first.
  const BalanceProblem p{.seconds = {{1, 3, 3, 3, 3, 9}}, .actor_of = v_shaped({.actors = 2}).actor_of};
  const Balance b = balance(p);
  EXPECT_EQ(b.largest, 12);
  EXPECT_EQ(b.stage_of, (std::vector<int>{0, 1, 1, 1, 2, 3}));
}

TEST(Balance, MessagesMoveTheCut) {
  BalanceProblem p{.seconds = {{4, 4, 4, 4}}, .actor_of = placement({{0, 1}})};
  EXPECT_EQ(balance(p).stage_of, (std::vector<int>{0, 0, 1, 1}));
  p.message = {1, 10, 1};  // something large crosses the middle
  EXPECT_EQ(balance(p).largest, 13);
}

TEST(Balance, MoreStagesThanPiecesAreRefused) {
  try {
    balance({.seconds = {{1, 1, 1}}, .actor_of = placement({{0, 1, 2, 3}})});
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(),
                 "[stages] 4 stages are asked for and the model has 3 pieces between its boundaries; hint: use at most "
                 "3 stages, more layers, or more boundaries");
  }
}

}  // namespace
}  // namespace stretto
