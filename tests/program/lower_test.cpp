// lower() and its parts on a step of five tasks.
#include "stretto/program/lower.h"

#include <gmock/gmock.h>

#include "program/by_hand.h"
#include "stretto/ops/all_gather.h"
#include "stretto/ops/squared_norm.h"
#include "stretto/program/emit/buckets.h"
#include "stretto/program/emit/gathers.h"
#include "stretto/program/memory/lifetimes.h"
#include "stretto/program/memory/memory.h"
#include "stretto/program/proofs/order.h"
#include "stretto/step/storage.h"

namespace stretto {
namespace {
using test::a_stage_per_piece;
using test::five_tasks;
using test::lines;
using test::two_actors;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr ActorId first{0}, second{1};

Program lowered(const LowerOptions& o = {}) { return lower(five_tasks(), two_actors(), a_stage_per_piece(), o); }

Step with_norms(Step s) {
  s.squares = 2;
  BodyPool pool;
  for (ParamId param : s.params.ids()) {
    TaskBuilder t({.part = Part::norm, .about = param});
    t.result(squared_norm(t.argument(f32, s.dims[0], AccumulatorId(param.value))), s.square_of(param));
    s.tasks.push_back(std::move(t).finish(pool));
  }
  return s;
}

TEST(Lower, RunsTheRowsWithTheirMessages) {
  const Program p = lowered();
  EXPECT_THAT(lines(p, first), ElementsAre("F0 m0", "send a m0", "F0 m1", "send a m1",  //
                                           "receive b m0", "W0 m0", "receive b m1", "W0 m1"));
  EXPECT_THAT(lines(p, second), ElementsAre("receive a m0", "F1 m0", "I1 m0", "send b m0", "W1 m0",  //
                                            "receive a m1", "F1 m1", "I1 m1", "send b m1", "W1 m1"));
}

TEST(Lower, FirstGradientIsWrittenAndLaterOnesAreAdded) {
  const Program p = lowered();
  std::vector<bool> overwrite;
  for (const Instruction& i : p.actors[first].code)
    if (const stretto::Run* r = std::get_if<stretto::Run>(&i); r && p.task(*r).part == Part::W)
      overwrite.push_back(r->overwrite);
  EXPECT_THAT(overwrite, ElementsAre(true, false));
}

TEST(Lower, OneActorSendsNothing) {
  Schedule s = looped({.actors = 1, .microbatches = 1, .chunks = 2});
  s.rows[0].F(0, 0).F(1, 0).I(1, 0).W(0, 0).W(1, 0);
  const Program p = lower(five_tasks(), s, a_stage_per_piece(), {});
  EXPECT_THAT(lines(p, first), ElementsAre("F0 m0", "F1 m0", "I1 m0", "W0 m0", "W1 m0"));
  EXPECT_TRUE(p.transfers.empty());
}

// A sum over ranks is a task of one collective, started as soon as the last gradient is made and awaited for its norm.
TEST(Lower, SumsOfGradientsAreStartedAndAwaited) {
  Step s = with_norms(five_tasks());
  for (Accumulator& a : s.accumulators) a.summed = {"data"};
  const Program p = lower(s, two_actors(), a_stage_per_piece(), {.mesh = {{"data", 2}}});
  EXPECT_THAT(lines(p, first), ElementsAre("F0 m0", "send a m0", "F0 m1", "send a m1", "receive b m0", "W0 m0",
                                           "receive b m1", "W0 m1", "start sum", "await sum", "norm m0",
                                           "receive squared norms of 1", "send squared norms of 0"));
  ASSERT_EQ(p.step->buckets.size(), 2u);
  EXPECT_EQ(p.actors[first].collectives, 1u);
  EXPECT_TRUE(p.actors[first].bucket_at[BucketId(0)].has_value() != p.actors[first].bucket_at[BucketId(1)].has_value());
}

// Latency is a twentieth of what a bucket takes, within bounds.
TEST(Lower, BucketsAreAsSmallAsLatencyAllows) {
  EXPECT_EQ(bucket_bytes({.latency = 1e-5, .bandwidth = 1e9}, 4), 800'000u);
  EXPECT_EQ(bucket_bytes({.latency = 1e-3, .bandwidth = 1e9}, 4), u64(8) << 20);
  EXPECT_EQ(bucket_bytes({.latency = 1e-9, .bandwidth = 1e9}, 4), u64(64) << 10);
  EXPECT_EQ(bucket_bytes({}, 4), u64(64) << 10);
}

// Messages of squared norms grow with the number of actors, not with its square.
TEST(Lower, SquaredNormsGoAlongATree) {
  const int actors = 8;
  const Step s = with_norms(five_tasks());
  Schedule wide = looped({.actors = actors, .microbatches = 1});
  wide.stages = 2;
  wide.actor_of = placement({{actors - 2, actors - 1}});
  wide.rows[actors - 2].F(0, 0).B(0, 0);
  wide.rows[actors - 1].F(1, 0).B(1, 0);
  const Program p = lower(s, wide, a_stage_per_piece(), {});
  const auto squares = std::count_if(p.transfers.begin(), p.transfers.end(),
                                     [](const Transfer& t) { return std::holds_alternative<SentSquares>(t.what); });
  EXPECT_EQ(squares, 3 + 2 + (actors - 1))
      << "up from 6 and from 7, which meet at 2 and 3 below the first; down to all";
}

TEST(SettleOrder, SaysWhoWaitsForever) {
  Program p = lowered();
  const auto swapped = [](ActorProgram& a, InstructionId one, InstructionId other) {
    test::changed(a, [&](test::InstructionList& code) { std::swap(code[one], code[other]); });
  };
  // Its first `b` only after the second `a`, which is there.
  swapped(p.actors[second], InstructionId(3), InstructionId(5));
  EXPECT_TRUE(settle_order(p).empty());
  Program stuck = lowered();
  swapped(stuck.actors[first], InstructionId(1), InstructionId(4));  // waits for `b` before it sends `a`
  const std::vector<Fault> faults = settle_order(stuck);
  ASSERT_EQ(faults.size(), 2u);
  EXPECT_THAT(faults[0].str(), HasSubstr("actor 0] waits forever at instruction 1: receive"));
  EXPECT_THAT(faults[1].str(), HasSubstr("actor 1] waits forever at instruction 0: receive"));
}

TEST(SettleOrder, KnowsWhatTheReceiverHasDone) {
  const Program p = lowered();
  for (const Transfer& t : p.transfers)
    if (t.value() && t.value()->value == ValueId(1) && t.value()->microbatch == MicrobatchId(0)) {
      EXPECT_EQ(t.posted, InstructionId(2))
          << "the first `a` has come, so the first F0 is done and it is sent; no more";
    }
}

TEST(PlanMemory, WhatIsForOneOtherActorIsMadeInItsMemory) {
  const Program p = lowered();
  const auto f0 = std::get<stretto::Run>(p.actors[first].code[InstructionId(0)]);
  int elsewhere = 0;
  const Calls& calls = *p.calls[f0.task];
  for (BufferId b : calls.buffers.ids())
    elsewhere += p.actors[first].slots[SlotId(f0.args.value + b.value)].elsewhere == second;
  EXPECT_EQ(elsewhere, 1);
  const Program apart = lowered({.remote = true});
  for (const Slot& s : apart.actors[first].slots) EXPECT_FALSE(s.elsewhere);
}

TEST(PlanMemory, TwoMicrobatchesOfAValueHaveTwoPlaces) {
  const Program p = lowered({.remote = true});
  std::vector<u64> places;
  for (const Transfer& t : p.transfers)
    if (t.value() && t.value()->value == ValueId(0)) places.push_back(t.extents[0].from.offset);
  ASSERT_EQ(places.size(), 2u);
  EXPECT_NE(places[0], places[1]) << "what is sent stays while the next action runs";
}

TEST(Lifetimes, FromWhereItCanBeWrittenToItsLastReader) {
  const Program p = lowered();
  const Lifetimes l = lifetimes(p, second);
  std::vector<std::string> all;
  for (const LiveBuffer& b : l.buffers)
    if (b.value)
      all.push_back(fmt::format("{} m{}: {} to {}", p.step->values[*b.value].name, b.microbatch.value, b.made.value,
                                b.read.value));
  EXPECT_THAT(all, ElementsAre("a m0: 0 to 4", "a m1: 5 to 9")) << "received, read by F1 and W1";
}

// Two pieces with a parameter of two ranks each, which their forward tasks gather.
Step gathering() {
  const Dim whole{"w", 4}, part{.name = "part", .size = 2, .logical = 4, .axes = {"data"}};
  Step s;
  s.dims = {whole, part};
  const Type all{f32, {DimId(0)}}, cut{f32, {DimId(1)}};
  s.params = {cut, cut};
  s.outputs = {{"y", all, 16}, {"z", all, 16}};
  s.pieces = 2;
  BodyPool pool;
  for (int piece : {0, 1}) {
    TaskBuilder t({.part = Part::F, .piece = PieceId(piece)});
    t.graph().dims = s.dims;
    const Tensor own{&t.body(), t.argument(cut, ParamId(piece))};
    t.result(square(all_gather(own, DimId(1), DimId(0), {"data"})), OutputId(piece));
    s.tasks.push_back(std::move(t).finish(pool));
  }
  return set_apart(s);
}
Schedule both_pieces_twice() {
  Schedule s = looped({.actors = 1, .microbatches = 2, .chunks = 2});
  s.rows[0].F(0, 0).F(1, 0).F(0, 1).F(1, 1);
  return s;
}
// A program whose gathers are not placed yet: four runs.
Program without_gathers(const Schedule& schedule) {
  Program p = lower(gathering(), schedule, a_stage_per_piece(), {.mesh = {{"data", 2}}, .purpose = Purpose::facts});
  std::vector<Instruction> runs;
  for (const Instruction& i : p.actors[first].code)
    if (std::holds_alternative<stretto::Run>(i)) runs.push_back(i);
  p.actors[first].code = Code(runs);
  p.actors[first].collectives = 0;
  return p;
}

TEST(PlaceGathers, APieceAhead) {
  const auto code = [](Reshard r) {
    Program p = without_gathers(both_pieces_twice());
    EXPECT_THAT(lines(p, first), ElementsAre("F0 m0", "F1 m0", "F0 m1", "F1 m1"));
    place_gathers(p, first, r);
    return lines(p, first);
  };
  EXPECT_THAT(code(Reshard::step), ElementsAre("start U0", "await U0", "start U1", "F0 m0", "await U1", "F1 m0",  //
                                               "F0 m1", "F1 m1"));
  EXPECT_THAT(code(Reshard::microbatch),
              ElementsAre("start U0", "await U0", "start U1", "F0 m0", "await U1", "start U0", "F1 m0",  //
                          "await U0", "start U1", "F0 m1", "await U1", "F1 m1"));
}

// Marks of a schedule say when: both before the first action, and the second piece's again before the last.
TEST(PlaceGathers, WhereTheScheduleSaysSo) {
  Schedule s = both_pieces_twice();
  const auto unshard = [](int stage, int before) {
    return StorageMark{.kind = StorageMark::Kind::unshard, .stage = StageId(stage), .before = ActionId(before)};
  };
  s.marks = {{unshard(0, 0), unshard(1, 0), unshard(1, 3)}};
  Program p = without_gathers(s);
  place_gathers(p, first, Reshard::microbatch);
  EXPECT_THAT(lines(p, first), ElementsAre("start U0", "await U0", "start U1", "F0 m0", "await U1", "F1 m0", "F0 m1",
                                           "start U1", "await U1", "F1 m1"));
  EXPECT_EQ(p.actors[first].collectives, 3u);
}

TEST(PlaceGathers, LeavesAloneWhatNeedsNone) {
  Program p = lowered();
  const auto before = lines(p, first);
  place_gathers(p, first, Reshard::step);
  EXPECT_EQ(lines(p, first), before);
}

}  // namespace
}  // namespace stretto
