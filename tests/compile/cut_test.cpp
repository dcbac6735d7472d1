#include "stretto/compile/inner/cut.h"

#include <gmock/gmock.h>

#include "compile/two_layers.h"
#include "stretto/compile/compile.h"
#include "stretto/compile/inner/differentiated.h"
#include "stretto/compile/placed.h"
#include "stretto/compile/scheduled.h"
#include "stretto/models/family.h"
#include "support/step_text.h"

namespace stretto {
namespace {
using testing::ElementsAre;
using testing::HasSubstr;

StepGraph graph() { return differentiated(trace_step(test::two_layers, {})); }

TEST(CutStep, StagesAsTheyAreGiven) {
  const Parallel p{.mesh = {{"pipe", 2}}, .stages = {1, 1}};
  const Cut c = cut_step(graph(), schedule_of(p, 2), p);
  EXPECT_THAT(c.stage_of, ElementsAre(StageId(0), StageId(1)));
  EXPECT_EQ(c.step.pieces, 2);
  EXPECT_THROW(cut_step(graph(), schedule_of({.mesh = {{"pipe", 1}}}, 2), p), Error) << "one stage too many";
}

TEST(CutStep, StagesAreChosenForTheClusterOfTheRun) {
  const auto stages = [](const Machine& machine, std::optional<Cluster> cluster) {
    const Parallel p{.mesh = {{"pipe", 2}}, .machine = machine, .cluster = std::move(cluster)};
    const ModelConfig m{.layers = 6, .width = 64, .heads = 4, .context = 64, .vocab = 2048};
    return compile(make_model(m, 8), adamw(), {.microbatches = 4}, p).program->stage_of;
  };
  const Machine computes{.flops = 1e9, .memory_bandwidth = 1e15}, moves{.flops = 1e15, .memory_bandwidth = 1e9};
  const Link link = Parallel{}.link;
  const Cluster cluster{.machine = moves, .inside = link, .between = link};
  EXPECT_EQ(stages(computes, cluster), stages(moves, {}));
  EXPECT_NE(stages(computes, {}), stages(moves, {})) << "or nothing is told apart";
}

TEST(CutStep, RecomputeMakesAgainWhatAStageDoesNotKeep) {
  const auto phases = [](const std::vector<Recompute>& how) {
    const Parallel p{.mesh = {{"pipe", 2}}, .recompute = how};
    std::vector<std::string> names;
    for (const Task& t : cut_step(graph(), schedule_of(p, 2), p).step.tasks)
      names.push_back(test::line(t).substr(0, test::line(t).find(':')));
    return names;
  };
  EXPECT_THAT(phases({}), ElementsAre("count0", "F0", "W0", "F1", "I1", "W1"));
  EXPECT_THAT(phases({Recompute::full}), ElementsAre("count0", "F0", "R0", "W0", "F1", "R1", "I1", "W1"));
  EXPECT_THROW(phases({Recompute::full, Recompute::none, Recompute::none}), Error);
}

TEST(CutStep, VerifierFindsStagesOutOfTurn) {
  const Parallel p{.mesh = {{"pipe", 2}}};
  const Schedule schedule = schedule_of(p, 2);
  Cut c = cut_step(graph(), schedule, p);
  EXPECT_TRUE(verify(c, schedule).empty());
  c.stage_of = {StageId(1), StageId(0)};
  EXPECT_EQ(verify(c, schedule).size(), 3u);
}

TEST(CutStep, AccumulatorsOfPipesAndRanks) {
  const Traced t = trace_step(test::two_layers, {});
  const Parallel p = complete({.names = {.data = 2}}, t);
  const Placed placed = place(differentiated(t), p);
  const Step one = with_accumulators(cut_step(placed.step, schedule_of(p, 1), p).step, 1, placed.sharded.get());
  ASSERT_EQ(one.accumulators.size(), 3u);
  std::vector<std::size_t> axes;
  for (const Accumulator& a : one.accumulators) axes.push_back(a.summed.size());
  EXPECT_THAT(axes, ElementsAre(0, 0, 1)) << "the tied parameter's are combined first";
  EXPECT_EQ(one.updated.size(), 3u);
  const Step two = with_accumulators(cut_step(placed.step, schedule_of(p, 1), p).step, 2, placed.sharded.get());
  ASSERT_EQ(two.accumulators.size(), 6u);
  EXPECT_EQ(two.accumulators.back().pipe, decltype(Accumulator::pipe)(1));
}

}  // namespace
}  // namespace stretto
