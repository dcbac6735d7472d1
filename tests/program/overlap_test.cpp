// Collectives of tasks go on beside other work of the same turn, and no bit changes.
#include "stretto/program/overlap/overlap.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "program/by_hand.h"
#include "stretto/ops/all_reduce.h"
#include "stretto/program/overlap/call_order.h"
#include "stretto/simulate/step_time.h"
#include "stretto/stretto.h"
#include "support/small_models.h"

namespace stretto {
namespace {
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// One piece: F, an I that sums over ranks, a W beside it.
Step talking() {
  const Dim row{"row", 1 << 16};
  Step s;
  s.dims = {row};
  const Type type{f32, {DimId(0)}};
  s.params = {type};
  s.inputs = {type};
  s.outputs = {{"y", type, 4 << 16}};
  s.accumulators.push_back({.param = ParamId(0), .piece = PieceId(0), .type = type});
  const TaskId F(0), I(1);
  s.values = {{.type = type, .bytes = 4 << 16, .producer = F, .consumers = {I, TaskId(2)}, .name = "a"}};
  BodyPool pool;
  const auto add = [&](Part part, auto make) {
    TaskBuilder t({.part = part, .piece = PieceId(0)});
    make(t);
    s.tasks.push_back(std::move(t).finish(pool));
  };
  const ValueId a(0);
  add(Part::F, [&](TaskBuilder& t) { t.result(square(t.argument(f32, row, InputId(0))), a); });
  add(Part::I, [&](TaskBuilder& t) { t.result(square(all_reduce(t.argument(f32, row, a), {"data"})), OutputId(0)); });
  add(Part::W, [&](TaskBuilder& t) { t.result(square(t.argument(f32, row, a)), AccumulatorId(0)); });
  return s;
}
Cluster with_link(double bandwidth) { return {.inside = {.bandwidth = bandwidth}, .ranks_per_node = 2}; }
const Cluster slow = with_link(1e9), fast = with_link(1e18);
OverlapOptions arranged_for(const Cluster& c) {
  return {.cluster = c, .predicted = [c](const Program& p) { return step_seconds(p, c); }};
}
Program talking_program(const Row& row, const std::optional<Cluster>& overlap) {
  Schedule schedule = looped({.actors = 1, .microbatches = 2});
  schedule.rows[0] = row;
  LowerOptions options{.mesh = {{"data", 2}}};
  if (overlap) options.overlap = arranged_for(*overlap);
  return lower(talking(), schedule, {StageId(0)}, options);
}
std::vector<std::string> code_of(const Row& row, const std::optional<Cluster>& overlap) {
  const Program p = talking_program(row, overlap);
  EXPECT_THAT(verify(p), IsEmpty());
  return test::lines(p, ActorId(0));
}

int in_flight(const Program& p) {
  int n = 0;
  for (const ActorProgram& a : p.actors)
    for (const Instruction& i : a.code)
      if (const Start* s = std::get_if<Start>(&i)) n += s->run.calls.has_value();
  return n;
}

TEST(Overlap, OnlyShortProgramsAreArrangedInSeveralWays) {
  const auto ways = [](int microbatches) {
    Schedule schedule = looped({.actors = 1, .microbatches = microbatches});
    for (int m = 0; m < microbatches; ++m) schedule.rows[0].F(0, m).B(0, m);
    Program p = lower(talking(), schedule, {StageId(0)}, {.mesh = {{"data", 2}}, .purpose = Purpose::facts});
    return overlap_calls(p, arranged_for(slow));
  };
  EXPECT_EQ(ways(4), 5);
  EXPECT_EQ(ways(4000), 3) << "12,000 tasks: as they are, and every turn by itself";
}

TEST(Overlap, WeightGradientsRunBesideASum) {
  const Row row = Row().F(0, 0).B(0, 0).F(0, 1).B(0, 1);
  EXPECT_THAT(code_of(row, std::nullopt), ElementsAre("F0 m0", "I0 m0", "W0 m0", "F0 m1", "I0 m1", "W0 m1"));
  EXPECT_THAT(code_of(row, slow), ElementsAre("F0 m0", "start I0", "W0 m0", "await I0", "I0 m0 [1, 2)",  //
                                              "F0 m1", "start I0", "W0 m1", "await I0", "I0 m1 [1, 2)"));
}

TEST(Overlap, WhatIsNotWorthItStaysInPlace) {
  EXPECT_THAT(code_of(Row().F(0, 0).F(0, 1).I(0, 0).I(0, 1).W(0, 0).W(0, 1), fast).front(), "F0 m0");
  EXPECT_THAT(code_of(Row().F(0, 0).I(0, 0).F(0, 1).I(0, 1).W(0, 0).W(0, 1), slow),
              ElementsAre("F0 m0", "I0 m0", "F0 m1", "start I0", "W0 m0", "W0 m1", "await I0", "I0 m1 [1, 2)"))
      << "I of the first microbatch has no neighbour to go on beside; weight gradients fill the gap of what they "
         "follow";
}

TEST(Overlap, MembersOfAGroupFillEachOthersGaps) {
  Row row = Row().F(0, 0).F(0, 1).I(0, 0).I(0, 1).W(0, 0).W(0, 1);
  row[2].overlap = row[3].overlap = 1;
  EXPECT_THAT(code_of(row, slow), ElementsAre("F0 m0", "F0 m1", "start I0", "start I0", "W0 m0", "W0 m1", "await I0",
                                              "I0 m0 [1, 2)", "await I0", "I0 m1 [1, 2)"));
}

TEST(Overlap, BackwardsOfTwoMicrobatchesSideBySideAreLikeAGroup) {
  EXPECT_THAT(code_of(Row().F(0, 0).F(0, 1).I(0, 0).I(0, 1).W(0, 0).W(0, 1), slow),
              ElementsAre("F0 m0", "F0 m1", "start I0", "start I0", "W0 m0", "W0 m1", "await I0", "I0 m0 [1, 2)",
                          "await I0", "I0 m1 [1, 2)"));
}

// Only where it fills no gap of its own turn.
TEST(Overlap, WeightGradientsCanBeLeftToTheNextTurn) {
  const Program p = talking_program(Row().F(0, 0).B(0, 0).F(0, 1).B(0, 1), std::nullopt);
  const ActorId actor(0);
  const std::vector<Instruction> region = written_out(p.actors[actor].code, regions_of(p, actor)[1]);
  const RegionAsItComes backward{p, actor, region};
  CallFacts facts(p.mesh);
  RegionWork work = work_of(p, backward.region, started_runs(p.actors[actor]), facts);
  WorkTimes on_fast(p, fast), on_slow(p, slow);
  EXPECT_THAT(order_calls(backward, work, on_fast, 1).left, ElementsAre(RegionAt(1)));
  EXPECT_THAT(order_calls(backward, work, on_fast, 0).left, IsEmpty());
  EXPECT_THAT(order_calls(backward, work, on_slow, 1).left, IsEmpty());
}

// Most of them by way of another weight gradient: lists of all would grow with the square of the pieces.
TEST(Overlap, WeightGradientsComeAfterAllAdditionsBeforeThem) {
  const Compiled c = compile(make_model({.family = "gpt2", .layers = 6, .width = 16, .heads = 2, .context = 8}, 8),
                             sgd(), {.microbatches = 2}, {.names = {.data = 2, .zero = 3}, .overlap = Overlap::none});
  const Program& p = *c.program;
  CallFacts facts(p.mesh);
  std::size_t said = 0, held = 0;
  for (TurnSpan turns : regions_of(p, ActorId(0))) {
    const std::vector<Instruction> region = written_out(p.actors[ActorId(0)].code, turns);
    const RegionWork all = work_of(p, region, started_runs(p.actors[ActorId(0)]), facts);
    IdVector<WorkId, std::set<WorkId>> before(all.work.size());
    std::set<WorkId> additions;
    for (WorkId w : all.work.ids()) {
      for (WorkId x : all.work[w].after) before[w].insert(x), before[w].insert(before[x].begin(), before[x].end());
      const auto* r = run_of(region[all.origins[w].at.value]);
      const std::optional<Part> part = r ? std::optional(p.task(*r).part) : std::nullopt;
      if (part == Part::A) additions.insert(w);
      if (part != Part::W) continue;
      EXPECT_TRUE(std::ranges::includes(before[w], additions));
      held += additions.size();
      said += std::ranges::count_if(all.work[w].after, [&](WorkId x) { return additions.contains(x); });
    }
  }
  EXPECT_GT(said, 0u);
  EXPECT_LT(2 * said, held);
}

// Reading a sum before it is awaited is found, also by another task.
TEST(Overlap, IsVerified) {
  Program p = talking_program(Row().F(0, 0).B(0, 0).F(0, 1).B(0, 1), slow);
  test::changed(p.actors[ActorId(0)],
                [](test::InstructionList& code) { std::swap(code[InstructionId(3)], code[InstructionId(4)]); });
  const std::vector<Fault> faults = verify(p);
  ASSERT_FALSE(faults.empty());
  EXPECT_THAT(faults[0].str(), HasSubstr("it touches what a collective still works on"));
}

// On two nodes, as slow as each other or not.
TEST(Overlap, IsNeverPredictedToBeSlowerThanWaitingInPlace) {
  const std::vector<Parallel> layouts{{.names = {.tensor = 2, .sequence = true}},
                                      {.names = {.data = 2, .tensor = 2, .zero = 3}},
                                      {.mesh = {{"pipe", 2}}, .names = {.tensor = 2}, .schedule = "zb-h1"},
                                      {.mesh = {{"pipe", 2}}, .names = {.data = 2, .zero = 2}},
                                      {.mesh = {{"pipe", 2}}, .names = {.data = 2}, .schedule = "dualpipe"}};
  int faster = 0, tried = 0;
  for (Parallel p : layouts)
    for (double inside : {1e7, 1e10})
      for (double between : {1e6, 1e9}) {
        p.cluster =
            Cluster{.inside = {.latency = 1e-6, .bandwidth = inside}, .between = {1e-5, between}, .ranks_per_node = 2};
        const auto takes = [&](Overlap overlap) {
          p.overlap = overlap, p.purpose = Purpose::sizes;
          const Compiled c = compile(make_model(tiny("gpt2", 4), 16), adamw(), {.microbatches = 4}, p);
          return step_time(*c.program, *p.cluster).seconds;
        };
        const double beside = takes(Overlap::calls), in_place = takes(Overlap::none);
        EXPECT_LE(beside, in_place) << p.mesh.str() << " " << p.names.tensor << " " << inside << " " << between;
        faster += beside < 0.99 * in_place, ++tried;
      }
  EXPECT_GT(faster, tried / 4);
}

// A run for a cluster whose links are not those of Parallel.
TEST(Overlap, IsForTheLinksOfTheCluster) {
  const auto flights = [](std::optional<Cluster> c) {
    return in_flight(*compile(make_model(tiny("gpt2", 4), 16), adamw(), {.microbatches = 4},
                              {.names = {.tensor = 2, .sequence = true}, .link = {.bandwidth = 1e7}, .cluster = c})
                          .program);
  };
  EXPECT_GT(flights({}), 0);
  EXPECT_GT(flights(Cluster{.inside = {.bandwidth = 1e7}, .ranks_per_node = 2}), 0);
  EXPECT_EQ(flights(Cluster{.inside = {.bandwidth = 1e18}, .ranks_per_node = 2}), 0);
}

// Two pipes add up their gradients, and ranks the sums, while the last backwards still run.
TEST(Overlap, GradientsOfTwoPipesAreSummedBesideTheLastTurn) {
  for (const char* schedule : {"dualpipe", "chimera"}) {
    const auto p = compile(make_model(tiny("gpt2", 4), 16), adamw(), {.microbatches = 4},
                           {.mesh = {{"pipe", 2}},
                            .names = {.data = 2},
                            .schedule = schedule,
                            .link = {},
                            .within = Link{.latency = 0, .bandwidth = 1e7}})
                       .program;
    int beside = 0;  // tasks of the rows that run after the first of those sums has begun
    for (const ActorProgram& a : p->actors) {
      bool begun = false;
      for (const Instruction& i : a.code) {
        const Start* s = std::get_if<Start>(&i);
        begun = begun || (s && p->task(s->run).part == Part::combine);
        if (const stretto::Run* r = std::get_if<stretto::Run>(&i)) beside += begun && r->action;
      }
    }
    EXPECT_GT(beside, 4) << schedule;
  }
}

// Scattered gradients that have arrived are added up between input gradients, so that those of further pieces can
// follow them: whole gradients of two pieces exist at a time.
TEST(Overlap, GradientsAreAddedUpWhileInputGradientsAreMade) {
  const Cluster cluster{.inside = {.latency = 1e-6, .bandwidth = 1e9}, .ranks_per_node = 4};
  const auto p = compile(make_model(tiny("llama", 8), 16), adamw(), {.microbatches = 4},
                         {.names = {.data = 2, .tensor = 2, .zero = 2}, .cluster = cluster})
                     .program;
  int added = 0, before_inputs = 0;  // of a backward: additions so far that an I of the same one comes after
  std::optional<ActionId> action;
  for (const Instruction& i : p->actors[ActorId(0)].code) {
    const stretto::Run* r = std::get_if<stretto::Run>(&i);
    if (!r || !r->action) continue;
    if (r->action != action) added = 0;
    action = r->action;
    if (p->task(*r).part == Part::A) ++added;
    if (p->task(*r).part == Part::I) before_inputs += std::exchange(added, 0);
  }
  EXPECT_GT(before_inputs, 3 * p->step->pieces) << "of most pieces, in every microbatch";
}

class OverlapBits : public testing::TestWithParam<const char*> {};
TEST_P(OverlapBits, AreThoseOfWaitingInPlace) {
  const std::string family = GetParam();
  const std::map<std::string, std::vector<ParallelNames>> layouts{
      {"gpt2", {{.tensor = 2}, {.tensor = 2, .sequence = true}}},
      {"llama", {{.data = 2, .tensor = 2, .zero = 3}}},
      {"mixtral", {{.expert = 2}}}};
  ModelConfig config = tiny(family, 4);
  if (family == "mixtral") config.experts = 4, config.top_k = 2;
  for (const ParallelNames& names : layouts.at(family))
    for (const char* schedule : {"1f1b", "zb-h1", "dualpipe-v", "kimi-k2", "chimera"}) {
      Parallel parallel{.mesh = {{"pipe", 2}}, .names = names, .schedule = schedule, .link = {.bandwidth = 1e8}};
      const Compiled beside = compile(make_model(config, 16), adamw(), {.microbatches = 4, .clip = 1}, parallel);
      parallel.overlap = Overlap::none;
      const Compiled in_place = compile(make_model(config, 16), adamw(), {.microbatches = 4, .clip = 1}, parallel);
      EXPECT_GT(in_flight(*beside.program), 0) << schedule;
      EXPECT_EQ(in_flight(*in_place.program), 0);
      Trainer a(in_place), b(beside, {.jitter = 1e-4, .jitter_seed = 5});
      const Batch batch = random_batch(beside, 50);
      for (int step = 0; step < 2; ++step) EXPECT_EQ(a.step(batch).loss, b.step(batch).loss);
      EXPECT_EQ(a.parameters_hash(), b.parameters_hash()) << family << " " << schedule;
    }
}
INSTANTIATE_TEST_SUITE_P(Families, OverlapBits, testing::Values("gpt2", "llama", "mixtral"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace stretto
