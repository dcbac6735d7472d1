// Exact training's transformation of schedule and step, on steps of a few tasks written by hand.
#include "stretto/compile/inner/exact.h"

#include <gmock/gmock.h>

#include "compile/two_layers.h"
#include "stretto/compile/scheduled.h"
#include "stretto/ops/square.h"
#include "stretto/step/task_builder.h"
#include "support/step_text.h"

namespace stretto {
namespace {
using test::lines;
using testing::ElementsAre;
using testing::HasSubstr;

const Dim numbers_dim{"numbers", 4};

// Two pieces; parameter 0 has accumulators in both, parameter 1 in the second.
Step three_accumulators() {
  Step s;
  s.dims = {numbers_dim};
  const Type type{f32, {DimId(0)}};
  s.params = {type, type};
  s.pieces = 2;
  for (const auto& [param, piece] : {std::pair{0u, 0}, {0u, 1}, {1u, 1}})
    s.accumulators.push_back({.param = ParamId(param), .piece = PieceId(piece), .type = type});
  return s;
}

TEST(ExactStep, LevelsOfATree) {
  const Step s = add_levels(three_accumulators(), 4);
  EXPECT_EQ(s.levels, 2);
  ASSERT_EQ(s.accumulators.size(), 9u) << "three at every level";
  EXPECT_THAT(lines(s),
              ElementsAre("carry0: gradient0 gradient3 -> gradient0 | add",  // level 1
                          "carry0: gradient3 gradient6 -> gradient3 | add",  // level 2
                          "carry1: gradient1 gradient4 gradient2 gradient5 -> gradient1 gradient2 | add add",
                          "carry1: gradient4 gradient7 gradient5 gradient8 -> gradient4 gradient5 | add add"));
  EXPECT_TRUE(add_levels(three_accumulators(), 1).tasks.empty()) << "one leaf needs no tree";
}

TEST(ExactStep, LeavesOfARank) {
  EXPECT_EQ(leaves_of(32, 2, {.microbatches = 4, .leaf = 2}), 8);
  EXPECT_THROW(leaves_of(12, 1, {}), Error);
}

TEST(ExactStep, TreeOfAPowerOfTwo) {
  EXPECT_EQ(tree_dims(8).size(), 3u);
  EXPECT_TRUE(tree_dims(1).empty());
}

// A sum, a count and a metric that is no sum.
struct WithOutputs {
  Traced traced;
  Step step;
  WithOutputs() {
    traced.batch = "batch";
    traced.terms = {{.name = "loss", .sum = OutputId(0), .count = OutputId(1), .scale = ScalarId(0)}};
    traced.metrics = {{.name = "most", .output = OutputId(2), .how = Accumulate::max}};
    traced.scalars = {"loss.scale"};
    const Type number{f32, {}}, count{f64, {}};
    traced.step.outputs.resize(3);
    step.inputs = {number};
    step.outputs = {{"loss.sum", number, 4}, {"loss.count", count, 8, true}, {"most", number, 4}};
    step.scalars = {count};
    BodyPool pool;
    TaskBuilder counts({.part = Part::count}), f({.part = Part::F});
    counts.result(square(counts.argument(f64, {}, InputId(0))), OutputId(1));
    f.result(square(f.argument(f32, {}, InputId(0))), OutputId(0));
    f.result(square(f.argument(f32, {}, InputId(0))), OutputId(2));
    step.tasks = {std::move(counts).finish(pool), std::move(f).finish(pool)};
  }
};

TEST(ExactStep, TransformsScheduleAndStep) {
  const WithOutputs h;
  const Surroundings around{.traced = h.traced, .microbatches = 4};
  const ScheduledStep e = exact({schedule_of({}, 2), h.step}, around, {}, {.exact = true});
  EXPECT_EQ(e.schedule.microbatches, 4) << "two leaves in place of every microbatch";
  std::vector<std::string> made = lines(e.step);
  ASSERT_EQ(made.size(), 4u) << "the largest is no sum";
  EXPECT_THAT(made[2], HasSubstr("outputs0 -> outputs0 | sum sum"));
  EXPECT_THAT(made[3], HasSubstr("outputs1 -> outputs1 | sum sum"));
  EXPECT_EQ(e.step.levels, 0) << "without gradients there is no tree of them";
  EXPECT_TRUE(e.shared.neighbours);
}

TEST(ExactStep, LeavesOtherRunsAlone) {
  const WithOutputs h;
  const ScheduledStep e = exact({schedule_of({}, 2), h.step}, {.traced = h.traced, .microbatches = 2}, {}, {});
  EXPECT_EQ(e.schedule, schedule_of({}, 2));
  EXPECT_EQ(lines(e.step), lines(h.step));
  EXPECT_FALSE(e.shared.neighbours);
  EXPECT_EQ(exact_rows(test::two_layers, {.microbatches = 2}, {}, {.microbatches = 2}).microbatches, 2);
}

TEST(ExactStep, TracesLeavesOfARank) {
  const Training training{.microbatches = 2, .exact = true, .leaf = 2};  // eight rows
  EXPECT_EQ(exact_rows(test::two_layers, {.microbatches = 2}, {}, training).microbatches, 4);
  const TraceOptions shared = exact_rows(test::two_layers, {.microbatches = 2}, {.names = {.data = 2}}, training);
  EXPECT_EQ(shared.microbatches, 2);
  EXPECT_EQ(shared.expert_rows, ExpertRows::gather) << "rows that are exchanged would depend on each other";
}

TEST(ExactStep, RefusesSchedulesOfAnotherOrder) {
  const WithOutputs h;
  Step trained = three_accumulators();
  const Surroundings around{.traced = h.traced, .microbatches = 4, .pipes = 2};
  const Parallel p{.mesh = {{"pipe", 2}}, .schedule = "chimera"};
  EXPECT_THROW(exact({schedule_of(p, 4), trained}, around, p, {.exact = true}), Error);
}

TEST(ExactStep, StateThatIsCutIsRefused) {
  const WithOutputs h;
  Parallel p;
  p.storage.state = {"data"};
  const std::vector<Fault> faults = order_of_sums({.traced = h.traced}, p);
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_THAT(faults[0].what, HasSubstr("optimizer state is cut over 'data'"));
  EXPECT_TRUE(order_of_sums({.traced = h.traced}, {}).empty());
}

}  // namespace
}  // namespace stretto
