#include "stretto/simulate/replay.h"

#include <gmock/gmock.h>

#include "stretto/schedule/builders.h"

namespace stretto {
namespace {

using testing::DoubleNear;

// A step as a prediction says, with something before and after it.
Timeline measured(const Schedule& s, const SimulateOptions& o) {
  Timeline t = simulate(s, o).timeline;
  double end = 0;
  for (Span& span : t.spans) {
    span.start += 1, span.end += 1, end = std::max(end, span.end);
    if (span.action->phase == Phase::B) span.halfway = span.start + 2;
  }
  for (int a = 0; a < t.actors; ++a) {
    t.spans.push_back({.actor = a, .start = 0, .end = 1, .label = "prologue"});
    t.spans.push_back({.actor = a, .start = end, .end = end + 0.5 + a, .label = "norm"});
    t.spans.push_back({.actor = a, .start = end + 2, .end = end + 5, .label = "update", .waited = a ? "" : "a norm"});
  }
  return t;
}

TEST(Replay, OfManyRanksIsOfTheirMeans) {
  const Schedule s = build_schedule("1f1b", {.actors = 2, .microbatches = 4});
  const Timeline one = simulate(s).timeline;
  Timeline t = one;
  t.ranks = 2;
  for (Span& span : t.spans) span.waiting = 0.25 * (span.end - span.start);
  for (Span span : one.spans) {
    span.coordinate = 1;
    t.spans.push_back(span);
  }
  EXPECT_DOUBLE_EQ(measured_costs(s, t)[StageId(1)].F, 1);
  const Prediction p = replay(s, t);
  EXPECT_DOUBLE_EQ(p.makespan, one.makespan());
  EXPECT_DOUBLE_EQ(p.bubble, t.bubble()) << "an eighth of every task is waiting";
}

TEST(Replay, OfARegularStepIsTheStep) {
  for (const char* name : {"1f1b", "zb-h1", "zb-v"}) {
    const Schedule s = build_schedule(name, {.actors = 2, .microbatches = 6});
    SimulateOptions o;
    for (int i = 0; i < s.stages; ++i) o.stages.push_back({.F = 1.0 + i, .I = 2, .W = 0.5 + 0.1 * i});
    const Timeline t = measured(s, o);
    const auto costs = measured_costs(s, t);
    ASSERT_EQ(int(costs.size()), s.stages);
    for (int i = 0; i < s.stages; ++i) {
      EXPECT_THAT(costs[StageId(i)].F, DoubleNear(1.0 + i, 1e-9));
      if (costs[StageId(i)].B)
        EXPECT_THAT(*costs[StageId(i)].B, DoubleNear(2.5 + 0.1 * i, 1e-9));
      else
        EXPECT_THAT(costs[StageId(i)].W, DoubleNear(0.5 + 0.1 * i, 1e-9));
    }
    const Prediction p = replay(s, t);
    EXPECT_EQ(p.timeline.spans.size(), t.spans.size());
    EXPECT_LE(p.makespan, t.makespan() + 1e-9);
    // The last part starts when the slower actor has its norm: an actor that is done earlier gains nothing.
    const double step = simulate(s, o).makespan;
    EXPECT_GE(p.makespan, 1 + step + 0.5 + 3 - 1e-9) << name;
    for (std::size_t i = 1; i < p.timeline.spans.size(); ++i) {
      const Span &x = p.timeline.spans[i - 1], &y = p.timeline.spans[i];
      EXPECT_TRUE(x.actor != y.actor || y.start >= x.end - 1e-9);
    }
  }
}

TEST(Replay, TakesTheMeanOfWhatVaried) {
  const Schedule s = build_schedule("1f1b", {.actors = 1, .microbatches = 2});
  Timeline t{.actors = 1, .stages = 1};
  const auto span = [&](int i, double start, double end) {
    t.spans.push_back({.start = start, .end = end, .action = s.rows[0][std::size_t(i)]});
  };
  span(0, 0, 1);
  span(1, 1, 2);
  span(1, 5, 6);  // one action that had to wait in between
  span(2, 6, 9);
  span(3, 9, 11);
  const auto costs = measured_costs(s, t);
  EXPECT_EQ(costs[StageId(0)].F, 2);
  EXPECT_EQ(costs[StageId(0)].B, 2);
  EXPECT_EQ(replay(s, t).makespan, 8);
}

TEST(Replay, OfNothingIsNothing) {
  const Schedule s = build_schedule("1f1b", {.actors = 2, .microbatches = 2});
  EXPECT_EQ(replay(s, Timeline{.actors = 2, .stages = 2}).makespan, 0);
}

}  // namespace
}  // namespace stretto
