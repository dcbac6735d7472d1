#include "stretto/simulate/simulate.h"

#include <gtest/gtest.h>

#include "stretto/base/error.h"

namespace stretto {
namespace {

Schedule one_f_one_b(const Request& r) {
  Schedule s = looped(r);
  for (int a = 0; a < r.actors; ++a) {
    Row& row = s.rows[a];
    int f = 0, b = 0;
    while (f < std::min(r.actors - a - 1, r.microbatches)) row.F(a, f++);
    while (f < r.microbatches) row.F(a, f++).B(a, b++);
    while (b < r.microbatches) row.B(a, b++);
  }
  return s;
}

// Two actors, one microbatch: F, F, I, I with the W of the last stage in the gap.
Schedule split_pair() {
  Schedule s = looped({.actors = 2, .microbatches = 1});
  s.rows[0].F(0, 0).I(0, 0).W(0, 0);
  s.rows[1].F(1, 0).I(1, 0).W(1, 0);
  return s;
}

std::string refusal(const Schedule& s, const SimulateOptions& o = {}) {
  try {
    simulate(s, o);
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

// Where B is one operation, as in the papers: I has all of its time.
const Times joined_backward{.F = 1, .I = 2, .W = 0};

TEST(Simulate, OneForwardOneBackward) {
  const Prediction p = simulate(one_f_one_b({.actors = 4, .microbatches = 8}), {.times = joined_backward});
  EXPECT_EQ(p.makespan, 33);
  EXPECT_EQ(p.span, 33);
  EXPECT_EQ(p.period, 33);
  EXPECT_EQ(p.period_barrier, 33);
  EXPECT_DOUBLE_EQ(p.bubble, 9.0 / 33);
  EXPECT_DOUBLE_EQ(p.actor_bubble[2], 9.0 / 33);
  EXPECT_EQ(p.peak, (std::vector<double>{4, 3, 2, 1}));
  EXPECT_EQ(p.weights, (std::vector<double>{1, 1, 1, 1}));
  EXPECT_TRUE(p.peak_bytes.empty());
  EXPECT_EQ(p.timeline.makespan(), 33);
  EXPECT_EQ(p.timeline.span(), 33);
  EXPECT_DOUBLE_EQ(p.timeline.bubble(), 9.0 / 33);
  for (int a = 0; a < 4; ++a) EXPECT_EQ(p.timeline.peak(a), 4 - a);
}

TEST(Simulate, SaysWhatEachStartWaitedFor) {
  const Prediction p = simulate(split_pair(), {.times = {.message = 0.5}});
  ASSERT_EQ(p.timeline.spans.size(), 6u);
  const std::vector<Span>& s = p.timeline.spans;
  EXPECT_EQ(s[0].waited, "");
  EXPECT_EQ(s[1].waited, "message 1I0 from actor 1");
  EXPECT_EQ(s[1].start, 4);
  EXPECT_EQ(s[2].waited, "");
  EXPECT_EQ(s[3].waited, "message 0F0 from actor 0");
  EXPECT_EQ(s[3].start, 1.5);
  EXPECT_EQ(s[5].end, 4.5);
  EXPECT_EQ(p.makespan, 6);
}

TEST(Simulate, MessagesCostLatencyAndBytes) {
  StageCosts stages(2);
  stages[StageId(0)].message_bytes = 100;
  stages[StageId(1)].message_bytes = 1e9;  // what the last stage makes goes nowhere
  SimulateOptions o{
      .stages = stages, .link = [](int, int) { return Link{.latency = 0.25, .bandwidth = 400}; }, .messages = true};
  const Prediction p = simulate(split_pair(), o);
  EXPECT_EQ(p.makespan, 5 + 2 * 0.5);
  std::vector<std::string> labels;
  for (const Span& s : p.timeline.spans) {
    if (s.lane != Lane::message) continue;
    labels.push_back(s.label);
    EXPECT_EQ(s.end - s.start, 0.5);
  }
  EXPECT_EQ(labels, (std::vector<std::string>{"0F0 to actor 1", "1I0 to actor 0"}));
}

TEST(Simulate, ContentionSendsOneMessageAtATime) {
  Schedule s = looped({.actors = 2, .microbatches = 3});
  for (int m = 0; m < 3; ++m) s.rows[0].F(0, m), s.rows[1].F(1, m);
  SimulateOptions o{.times = {.message = 10}};
  EXPECT_EQ(simulate(s, o).makespan, 14) << "latencies overlap";
  o.contention = true;
  const Prediction p = simulate(s, o);
  EXPECT_EQ(p.makespan, 1 + 3 * 10 + 1) << "the link is the bottleneck";
  o.messages = true;
  int waiting = 0;
  for (const Span& span : simulate(s, o).timeline.spans) waiting += span.waited == "the link";
  EXPECT_EQ(waiting, 2);
}

TEST(Simulate, StagesMayDiffer) {
  StageCosts stages(2);
  stages[StageId(0)] = {.F = 2, .I = 0, .W = 1};
  stages[StageId(1)] = {.F = 3, .I = 4, .W = 5};
  EXPECT_EQ(simulate(split_pair(), {.stages = stages}).makespan, 2 + 3 + 4 + 5);
  Schedule joined = looped({.actors = 2, .microbatches = 1});
  joined.rows[0].F(0, 0).B(0, 0);
  joined.rows[1].F(1, 0).B(1, 0);
  EXPECT_EQ(simulate(joined, {.stages = stages}).makespan, 2 + 3 + 4 + 5) << "W of stage 1 is last";
  stages[StageId(1)].B = 4.5;
  EXPECT_EQ(simulate(joined, {.stages = stages}).makespan, 2 + 3 + 4 + 1) << "B of stage 0 is";
}

TEST(Simulate, ChunksAndPiecesGetTheirShare) {
  Schedule s = looped({.actors = 1, .microbatches = 1, .chunks = 2, .segments = 2});
  for (int stage : {0, 1}) s.rows[0].add(Phase::F, stage, 0, 0, 0).add(Phase::F, stage, 0, 0, 1);
  for (int stage : {1, 0}) s.rows[0].add(Phase::B, stage, 0, 0, 1).add(Phase::B, stage, 0, 0, 0);
  const Prediction p = simulate(s);
  EXPECT_EQ(p.makespan, 3);
  EXPECT_EQ(p.peak[0], 1);
  EXPECT_EQ(p.timeline.spans[0].end, 0.25);
}

TEST(Simulate, MembersOfAnOverlapGroupFollowEachOtherAndLiveTogether) {
  Schedule s = looped({.actors = 1, .microbatches = 2});
  s.rows[0].F(0, 0).B(0, 0).F(0, 1).B(0, 1);
  EXPECT_EQ(simulate(s).peak[0], 1);
  s.rows[0][1].overlap = s.rows[0][2].overlap = 1;
  const Prediction p = simulate(s);
  EXPECT_EQ(p.makespan, 6) << "without collectives there is nothing to gain";
  EXPECT_EQ(p.timeline.spans[1].end, p.timeline.spans[2].start);
  EXPECT_EQ(p.bubble, 0);
  EXPECT_EQ(p.peak[0], 2) << "a group is merged where there are collectives: nothing is freed before its end";
  EXPECT_EQ(p.timeline.peak(0), 2);
  EXPECT_EQ(p.timeline.memory[0].back().second, 0);
}

TEST(Simulate, RecomputeIsImpliedBeforeTheBackward) {
  const Schedule s = one_f_one_b({.actors = 2, .microbatches = 1});
  const Prediction p = simulate(s, {.times = joined_backward, .recompute = 1});
  // Actor 0 recomputes while it waits for the gradient.
  EXPECT_EQ(p.makespan, 1 + 1 + 1 + 2 + 2);
  ASSERT_EQ(p.timeline.spans.size(), 6u);
  EXPECT_EQ(p.timeline.spans[1].action->phase, Phase::R);
  EXPECT_EQ(p.timeline.spans[1].start, 1);
  EXPECT_EQ(p.peak, (std::vector<double>{1, 1}));

  Schedule written = looped({.actors = 2, .microbatches = 1});
  written.rows[0].F(0, 0).R(0, 0).B(0, 0);
  written.rows[1].F(1, 0).R(1, 0).B(1, 0);
  EXPECT_EQ(simulate(written, {.times = joined_backward, .recompute = 1}).makespan, p.makespan);
  EXPECT_EQ(simulate(written, {.times = joined_backward}).makespan, p.makespan)
      << "R takes F's time when none is given";
}

TEST(Simulate, RecomputeKeepsOnlyInputs) {
  StageCosts stages(1);
  stages[StageId(0)] = {.R = 1, .activation_bytes = 100, .kept_bytes = 10, .weight_bytes = 7};
  Schedule s = looped({.actors = 1, .microbatches = 3});
  s.rows[0].F(0, 0).F(0, 1).F(0, 2).I(0, 0).W(0, 0).B(0, 1).B(0, 2);
  const Prediction p = simulate(s, {.stages = stages});
  EXPECT_EQ(p.peak_bytes, std::vector<double>{120});
  EXPECT_EQ(p.weight_bytes, std::vector<double>{7});
  EXPECT_DOUBLE_EQ(p.peak[0], 1.2);
  EXPECT_EQ(p.timeline.memory_unit, "bytes");
  EXPECT_EQ(p.timeline.peak(0), 120);
  EXPECT_EQ(p.timeline.memory[0].back().second, 0) << "everything is freed at the end";
}

TEST(Simulate, PeriodKnowsWhetherActorsWaitForEachOther) {
  // Two independent actors of different length would drift apart; a step with messages is paced by the slower one.
  StageCosts stages(2);
  stages[StageId(0)] = {.F = 1, .I = 0, .W = 0};
  stages[StageId(1)] = {.F = 5, .I = 0, .W = 0};
  Schedule s = looped({.actors = 2, .microbatches = 1});
  s.rows[0].F(0, 0);
  s.rows[1].F(1, 0);
  const Prediction p = simulate(s, {.stages = stages, .epilogue = 0.5});
  EXPECT_EQ(p.period_barrier, 6.5);
  EXPECT_NEAR(p.period, 5.5, 1e-9);
  EXPECT_EQ(simulate(s, {.repeats = 0}).period, 0);
}

TEST(Simulate, NumbersDoNotNeedTheTimeline) {
  const Prediction p =
      simulate(one_f_one_b({.actors = 4, .microbatches = 8}), {.times = joined_backward, .timeline = false});
  EXPECT_EQ(p.makespan, 33);
  EXPECT_TRUE(p.timeline.spans.empty());
}

TEST(Simulate, InputGradientsMayFreeAShare) {
  Schedule s = looped({.actors = 1, .microbatches = 2});
  s.rows[0].F(0, 0).I(0, 0).F(0, 1).I(0, 1).W(0, 0).W(0, 1);
  EXPECT_EQ(simulate(s).peak[0], 2);
  const Prediction p = simulate(s, {.freed_by_i = 0.25});
  EXPECT_EQ(p.peak[0], 1.75);
  EXPECT_EQ(p.timeline.memory[0].back().second, 0);
}

TEST(Simulate, ACycleIsAnErrorThatNamesTheChain) {
  Schedule s = looped({.actors = 2, .microbatches = 2});
  s.rows[0].F(0, 0).B(0, 0).F(0, 1).B(0, 1);
  s.rows[1].F(1, 0).F(1, 1).B(1, 0).B(1, 1);
  EXPECT_NE(refusal(s).find("actor 0 waits at 0B0 (position 1) for a message from actor 1 (1B0, position 2), which "
                            "waits at 1F1 (position 1) for a message from actor 0 (0F1, position 2)"),
            std::string::npos)
      << refusal(s);
}

TEST(Simulate, ACycleInsideOneActorIsAnErrorToo) {
  Schedule s = looped({.actors = 1, .microbatches = 1, .chunks = 2});
  s.rows[0].F(1, 0).F(0, 0).B(1, 0).B(0, 0);
  EXPECT_NE(refusal(s).find("the forward needs the stage before it, 0F0 (position 1)"), std::string::npos)
      << refusal(s);
}

TEST(Simulate, WhatHasNoMeaningIsRefused) {
  EXPECT_NE(refusal(Schedule{}).find("the schedule has no rows"), std::string::npos);
  const auto changed = [](auto change) {
    Schedule s = split_pair();
    change(s);
    return refusal(s);
  };
  const auto expect = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect(changed([](Schedule& s) { s.rows[0].F(0, 0); }), "actor 0, position 3, 0F0] the action stands twice");
  expect(changed([](Schedule& s) { s.rows[1].erase(s.rows[1].begin() + 1, s.rows[1].end()); }), "1B0 is missing");
  expect(changed([](Schedule& s) { s.microbatches = 1 << 30; }), "need at least");
  expect(refusal(split_pair(), {.times = {.F = -1}}), "not negative");
  expect(refusal(split_pair(), {.freed_by_i = 1.5}), "share of 0 to 1");
  expect(refusal(split_pair(), {.stages = StageCosts(3)}), "3 stage costs for 2 stages");
  expect(refusal(split_pair(), {.link = [](int, int) { return Link{.bandwidth = 0}; }}), "bandwidth 0");
}

TEST(Simulate, AGradientLeavesWhenIIsDone) {
  // 1F1B on two actors, one microbatch: the second F, then I of stage 1, then both W's side by side with I of stage 0.
  const Schedule s = one_f_one_b({.actors = 2, .microbatches = 1});
  EXPECT_DOUBLE_EQ(simulate(s, {.times = {.F = 1, .I = 2, .W = 4}}).makespan, 1 + 1 + 2 + 6);
  EXPECT_DOUBLE_EQ(simulate(s, {.times = {.F = 1, .I = 6, .W = 0}}).makespan, 1 + 1 + 6 + 6) << "B as one operation";
}

}  // namespace
}  // namespace stretto
