#include "stretto/simulate/step_time.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "stretto/compile/compile.h"
#include "stretto/models/family.h"
#include "stretto/schedule/csv.h"

namespace stretto {
namespace {

Compiled two_replicas(int layers) {
  return compile(
      make_model({.family = "gpt2", .layers = layers, .width = 1024, .heads = 8, .context = 16, .vocab = 64}, 4), sgd(),
      {.microbatches = 2}, {.names = {.data = 2}});
}

TEST(StepTime, WithoutLinksNothingIsWaitedFor) {
  const Compiled c = two_replicas(2);
  const StepTime t = step_time(*c.program, {.machine = {.flops = 1e12}});
  EXPECT_GT(t.seconds, 0);
  EXPECT_EQ(t.sums, 0);
  EXPECT_EQ(t.exposed, 0);
}

TEST(StepTime, SumsOfGradientsAreHiddenBehindBackward) {
  const Compiled c = two_replicas(4);
  const Machine machine{.flops = 1e12, .memory_bandwidth = 1e18};
  const StepTime alone = step_time(*c.program, {.machine = machine});
  Cluster cluster{.machine = machine, .between = {.bandwidth = 1e9}};
  cluster.between.bandwidth *= step_time(*c.program, cluster).sums / (0.3 * alone.seconds);
  const StepTime t = step_time(*c.program, cluster);
  EXPECT_NEAR(t.sums, 0.3 * alone.seconds, 1e-9 * t.sums);
  EXPECT_GT(t.exposed, 0);  // the last bucket has only norms after it
  EXPECT_LT(t.exposed, 0.2 * t.sums);
}

// Tasks of one phase and piece, in the order of actor 0's list, from the first of phase `from` and microbatch `m` on.
std::vector<std::string> order(const Compiled& c, Part from, MicrobatchId m) {
  std::vector<std::string> names;
  for (const Instruction& i : c.program->actors[ActorId(0)].code)
    if (const stretto::Run* r = std::get_if<stretto::Run>(&i)) {
      const Task& t = c.program->step->tasks[r->task];
      if ((t.part != Part::I && t.part != Part::W) || (names.empty() && (t.part != from || r->microbatch != m)))
        continue;
      names.push_back(fmt::format("{}{} {}", name_of(t.part), t.piece->value, r->microbatch.value));
    }
  return names;
}

// In the last microbatch each piece's weight gradients are made right after those of its inputs.
TEST(StepTime, LastBackwardGoesPieceByPiece) {
  const Compiled c =
      compile(make_model({.family = "gpt2", .layers = 1, .width = 32, .heads = 2, .context = 16, .vocab = 64}, 4),
              sgd(), {.microbatches = 2}, {.names = {.data = 2}});
  EXPECT_EQ(order(c, Part::I, MicrobatchId(0)),
            (std::vector<std::string>{"I3 0", "I2 0", "I1 0", "W3 0", "W2 0", "W1 0", "W0 0", "I3 1", "W3 1", "I2 1",
                                      "W2 1", "I1 1", "W1 1", "W0 1"}));
}

// An actor whose gradients others wait for sends them first; weight gradients side by side go piece by piece, each
// accumulator in the order of microbatches.
TEST(StepTime, WeightGradientsSideBySideGoPieceByPiece) {
  const Schedule schedule = read_csv("0F0,0F1,0I0,0I1,0W0,0W1\n1F0,1B0,1F1,1B1\n", "late weights");
  const Compiled c = compile(
      make_model({.family = "gpt2", .layers = 1, .width = 32, .heads = 2, .context = 16, .vocab = 64}, 4), sgd(),
      {.microbatches = 2}, {.mesh = {{"pipe", 2}}, .names = {.data = 2}, .schedule = schedule, .stages = {2, 2}});
  const std::vector<std::string> all = order(c, Part::I, MicrobatchId(0));
  EXPECT_EQ((std::vector<std::string>(all.end() - 4, all.end())),
            (std::vector<std::string>{"W1 0", "W1 1", "W0 0", "W0 1"}));
}

// A bucket's sum starts after the last task that adds to it, not after all of backward.
TEST(StepTime, FirstSumStartsBeforeTheLastTask) {
  const Compiled c = two_replicas(4);
  const std::vector<Instruction> code = c.program->actors[ActorId(0)].code.written_out();
  ASSERT_GT(c.program->step->buckets.size(), 2u);
  const auto first = std::find_if(code.begin(), code.end(), [&](const Instruction& i) {
    const Start* s = std::get_if<Start>(&i);
    return s && c.program->task(s->run).part == Part::sum;
  });
  const auto later = std::count_if(first, code.end(), [&](const Instruction& i) {
    const stretto::Run* r = std::get_if<stretto::Run>(&i);
    return r && c.program->step->tasks[r->task].part == Part::W;
  });
  EXPECT_GE(later, 4);
}

}  // namespace
}  // namespace stretto
