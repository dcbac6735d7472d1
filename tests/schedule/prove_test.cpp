#include "stretto/schedule/prove.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "schedule/given.h"
#include "stretto/schedule/builders.h"
#include "stretto/schedule/csv.h"
#include "support/blocking_actors.h"
#include "support/property.h"
#include "support/random_schedule.h"
#include "support/true_fault.h"

namespace stretto {
namespace {

using testing::Each;
using testing::HasSubstr;

Schedule gpipe(int p, int m) { return build_schedule("gpipe", {.actors = p, .microbatches = m}); }
Schedule pipelined(int p, int m) { return build_schedule("1f1b", {.actors = p, .microbatches = m}); }
Schedule looped_bfs(int p, int m, int v) {
  return build_schedule("looped-bfs", {.actors = p, .microbatches = m, .chunks = v});
}

TEST(Messages, OneChannelPerStagesKindAndPipe) {
  const Traffic t = traffic_of(pipelined(3, 4));
  ASSERT_EQ(t.channels.size(), 4u);
  EXPECT_EQ(t.messages.size(), 16u);
  for (const Channel& c : t.channels) {
    EXPECT_EQ(c.messages, 4u);
    EXPECT_EQ(c.from.value, c.source.value);
    EXPECT_EQ(c.to.value, c.target.value);
    EXPECT_EQ(c.to.value, c.kind == Phase::F ? c.from.value + 1 : c.from.value - 1);
  }
  EXPECT_EQ(t.channels[0].str(), "stage 1 -> 0 I, actor 1 -> 0");
  EXPECT_EQ(traffic_of(pipelined(1, 4)).messages.size(), 0u);
  EXPECT_EQ(traffic_of(given("zb-v_p4_m8.csv")).channels.size(), 12u);  // not between stages 3 and 4, on one actor
  EXPECT_EQ(traffic_of(given("zb-v_p4_m8.csv"), ChannelKey::actors).channels.size(), 6u);
  EXPECT_EQ(traffic_of(given("chimera_p4_m4.csv", CsvPipes::logical)).channels.size(), 12u);
}

TEST(Messages, StepsStandAroundTheirAction) {
  using Kind = MessageStep::Kind;
  const Traffic t = traffic_of(pipelined(2, 1));
  std::vector<Kind> kinds;
  for (const MessageStep& s : t.actors[ActorId(0)]) kinds.push_back(s.kind);
  EXPECT_EQ(kinds, (std::vector<Kind>{Kind::run, Kind::send, Kind::complete, Kind::post, Kind::receive, Kind::run}));
  EXPECT_EQ(t.actors[ActorId(0)][5].position, 1u);
}

TEST(Messages, OfNonsenseAreRefused) { EXPECT_THROW(traffic_of(Schedule{}), Error); }

TEST(Prove, SmallestCapacities) {
  for (const BuilderEntry& e : schedule_builders()) {
    const bool two =
        e.name == "looped-bfs" || e.name == "interleaved-zb" || e.name == "dualpipe" || e.name == "chimera";
    const Proof p = prove(e.build({.actors = 4, .microbatches = 8}));
    EXPECT_EQ(p.smallest, e.name == "gpipe" ? 0 : two ? 2 : 1) << e.name;
    EXPECT_TRUE(p.ok()) << e.name;
  }
  EXPECT_EQ(prove(build_schedule("interleaved-zb", {.actors = 8, .microbatches = 16})).smallest, 4);
  EXPECT_EQ(prove(pipelined(1, 8)).smallest, 0);
  EXPECT_EQ(prove(given("zb-v_p4_m8.csv")).smallest, 1);
  EXPECT_EQ(prove(given("v-half_p4_m8.csv")).smallest, 1);
  EXPECT_EQ(prove(given("dualpipev_4rank_10mb.csv")).smallest, 1);
  EXPECT_EQ(prove(given("dualpipe_p4_m8.csv", CsvPipes::logical)).smallest, 2);
  EXPECT_EQ(prove(given("chimera_p4_m4.csv", CsvPipes::logical)).smallest, 2);
}

TEST(Prove, OneFifoPerPairOvertakes) {
  const Proof pair = prove(given("zb-v_p4_m8.csv"), {.matching = Matching::pair});
  EXPECT_EQ(pair.overtaking, 6u);
  EXPECT_THAT(
      pair.faults[0].fault.str(),
      HasSubstr("[actor 1, position 8, 6I0] 3 pairs of messages would overtake each other in channel actor 0 -> 1: 0F6 "
                "(position 6) is sent before 7I0 (position 8), but taken after it"));
  EXPECT_EQ(prove(given("zb-v_p4_m8.csv")).overtaking, 0u);
  EXPECT_TRUE(prove(given("zb-v_p4_m8.csv")).ok());
}

TEST(Prove, ADeadlockIsPrintedAsAChain) {
  const Proof p = prove(pipelined(2, 2), {.capacity = 0});
  ASSERT_EQ(p.faults.size(), 1u);
  EXPECT_EQ(p.faults[0].fault.str(),
            "[actor 0, position 1, 0F1] deadlock at channel capacity 0: actor 0 waits at 0F1 (position 1) to send to "
            "actor 1 (no "
            "receive is posted), which waits at 1B0 (position 1) to send to actor 0 (no receive is posted), which "
            "waits at 0F1; "
            "hint: a channel capacity of 1 is enough");
  EXPECT_TRUE(p.occupancy.empty());
  const Proof full = prove(looped_bfs(4, 8, 2), {.capacity = 1});
  ASSERT_FALSE(full.ok());
  EXPECT_THAT(full.faults[0].fault.what, HasSubstr("is full"));
}

TEST(Prove, WhatCannotRunAtAnyCapacity) {
  const Proof p = prove(schedule_of(parse_csv("0F0,0B0,0F1,0B1\n1F1,1F0,1B0,1B1\n", "f")));
  EXPECT_EQ(p.smallest, std::nullopt);
  EXPECT_THAT(p.faults.back().fault.str(),
              HasSubstr("waits at 0B0 (position 1) for a message from actor 1 (1B0, position 2)"));
  EXPECT_THAT(p.faults.back().fault.hint, HasSubstr("no capacity helps"));
}

TEST(Prove, OvertakingWithinAChannel) {
  const Schedule s = schedule_of(parse_csv("0F0,0F1,0B0,0B1\n1F1,1F0,1B0,1B1\n", "f"));
  EXPECT_TRUE(validate(s).ok());
  EXPECT_EQ(prove(s).overtaking, 1u);
  EXPECT_FALSE(prove(s).ok());
  EXPECT_TRUE(prove(s, {.matching = Matching::tagged}).ok());
  EXPECT_EQ(prove(s, {.matching = Matching::tagged}).smallest, 1);  // 0F0's waits, 0F1's goes to its posted receive
  EXPECT_EQ(prove(s, {.capacity = 0, .matching = Matching::tagged}).faults.size(), 1u);
}

TEST(Prove, Occupancy) {
  EXPECT_THAT(prove(gpipe(4, 8), {.capacity = 0}).occupancy, Each(0));
  EXPECT_THAT(prove(gpipe(2, 8), {.capacity = 3}).occupancy, Each(testing::Le(3)));
  const Proof p = prove(pipelined(3, 6));
  ASSERT_EQ(p.occupancy.size(), p.channels.size());
  // Forwards leave at times 1, 2, 3, 4 and their receives are posted at 0, 4, 7, 10: before the one at 4 two are held.
  // Gradients are waited for.
  const Schedule s = schedule_of(parse_csv("0F0,0F1,0F2,0F3,0B0,0B1,0B2,0B3\n1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n", "f"));
  const Proof ahead = prove(s);
  for (std::size_t c = 0; c < ahead.channels.size(); ++c) {
    EXPECT_EQ(ahead.occupancy[c], ahead.channels[c].kind == Phase::F ? 2 : 0);
  }
}

// The same choices as numbers that shrink.
RandomSchedule any_request() {
  using Placement = RandomSchedule::Placement;
  auto upto = [](int lo, int hi) { return *rc::gen::inRange(lo, hi + 1); };
  RandomSchedule r;
  r.placement = *rc::gen::element(Placement::looped, Placement::v_shaped, Placement::any, Placement::bidirectional);
  r.actors = upto(1, 6);
  r.microbatches = upto(1, 12);
  r.chunks = upto(1, 2);
  r.segments = upto(0, 7) == 7 ? 2 : 1;
  r.ordered = upto(0, 4) == 4 ? 0.5 : upto(0, 9) == 9 ? 0.9 : 1;
  r.forward = upto(0, 4) / 4.0;
  r.halves = upto(0, 2) / 2.0;
  r.recompute = upto(0, 5) == 5 ? 0.5 : 0;
  r.groups = upto(0, 3) == 3 ? 0.2 : 0;
  r.seed = *rc::gen::noShrink(rc::gen::arbitrary<unsigned>());
  return r;
}

Blocking::Matching plain(Matching m) { return Blocking::Matching(int(m)); }

// Validator and proof against actors that just run, at a random capacity and matching.
void compare(const Schedule& s, std::mt19937& rng) {
  const Matching matching = Matching(rng() % 3);
  const int each = int(rng() % 4);  // of one queue
  const int capacity = matching == Matching::pair ? each : each * s.pipes();
  const Validation v = validate(s);
  const std::string why = run_blocking(s, {.capacity = each, .matching = plain(matching)}, rng);
  RC_LOG(s.str() + v.str());
  RC_LOG(fmt::format("queues of {}, matching {}: {}\n", each, int(matching), why));
  for (const Finding& f : v.faults) {
    if (!is_true(s, f)) RC_FAIL("not true: " + f.fault.str());
  }
  if (!v.ok()) {
    RC_TAG("faults");
    RC_ASSERT(!why.empty());
    return;
  }
  const Proof p = prove(s, {.capacity = capacity, .matching = matching});
  for (const Finding& f : p.faults) RC_LOG(f.fault.str() + "\n");
  RC_TAG(why.empty() ? "runs" : p.overtaking ? "overtaking" : "deadlock");
  RC_ASSERT(p.ok() == why.empty());
  RC_ASSERT(p.smallest.has_value());
  if (matching == Matching::tagged || p.overtaking == 0) RC_ASSERT((capacity >= p.smallest) == why.empty());
  if (p.ok() && each > 0) {
    for (const int n : p.occupancy) RC_ASSERT(n <= each);
  }
}

TEST(Prove, AgreesWithBlockingActorsOnRandomSchedules) {
  EXPECT_TRUE(holds("validator and proof agree with blocking actors", 10000, [] {
    const RandomSchedule r = any_request();
    const Schedule s = random_schedule(r);
    std::mt19937 rng(r.seed + 1);
    if (r.groups == 0) RC_ASSERT(validate(s).ok());
    compare(s, rng);
  }));
}

// Of the builders' schedules at sizes they accept, one spoiled in a single place or left as it is.
TEST(Prove, AgreesWithBlockingActorsOnBuiltSchedules) {
  EXPECT_TRUE(holds("built schedules, whole and spoiled", 2000, [] {
    const auto builders = schedule_builders();
    const BuilderEntry& e = builders[*rc::gen::inRange<std::size_t>(0, builders.size())];
    RC_LOG(std::string(e.name) + "\n");
    Request r{.actors = *rc::gen::inRange(1, 7), .microbatches = *rc::gen::inRange(1, 13)};
    Schedule s;
    try {
      s = e.build(r);
    } catch (const Error&) {
      r = {.actors = 4, .microbatches = 12};
      s = e.build(r);
    }
    std::mt19937 rng(*rc::gen::noShrink(rc::gen::arbitrary<unsigned>()));
    RC_ASSERT(validate(s).ok());
    if (rng() % 4) RC_LOG(spoil(s, rng) + "\n");
    compare(s, rng);
  }));
}

TEST(Prove, AgreesWithBlockingActorsOnSpoiledSchedules) {
  EXPECT_TRUE(holds("one spoiled action is accepted only if it does not matter, else a true fault is named", 10000, [] {
    const RandomSchedule r = any_request();
    Schedule s = random_schedule(r);
    std::mt19937 rng(r.seed + 2);
    RC_LOG(spoil(s, rng) + "\n");
    compare(s, rng);
  }));
}

}  // namespace
}  // namespace stretto
