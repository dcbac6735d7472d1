// Nothing is kept that nobody reads.
#include <gtest/gtest.h>

#include "stretto/ops/input.h"
#include "stretto/ops/ops.h"
#include "stretto/step/split.h"
#include "support/small_models.h"

namespace stretto {
namespace {

// Per argument of a body: does a result depend on it?
std::vector<bool> read(const Graph& g) {
  std::vector<bool> needed(g.nodes.size(), false), arguments;
  for (Value v : g.outputs) needed[v.node.value] = true;
  for (std::size_t i = g.nodes.size(); i-- > 0;)
    if (needed[i])
      for (Value v : g.nodes[i].operands) needed[v.node.value] = true;
  for (std::size_t i = 0; i < g.nodes.size(); ++i)
    if (g.nodes[i].op == &input_op) arguments.push_back(needed[i]);
  return arguments;
}

class Saves : public testing::TestWithParam<std::tuple<std::string, Recompute>> {
 protected:
  const Compiled c = compile(make_model(tiny(std::get<0>(GetParam()), 3), 8), adamw(), {.microbatches = 2},
                             {.mesh = {{"pipe", 2}}, .schedule = "zb-h1", .recompute = {std::get<1>(GetParam())}});
  const Step& s = *c.program->step;
};

TEST_P(Saves, EveryArgumentOfEveryTaskIsRead) {
  for (TaskId t : s.tasks.ids()) {
    const Task& task = s.tasks[t];
    const std::vector<bool> needed = read(*task.body);
    ASSERT_EQ(needed.size(), task.inputs.size());
    for (std::size_t k = 0; k < needed.size(); ++k) EXPECT_TRUE(needed[k]) << str(task) << " argument " << k;
    for (const BodyBuffer& b : c.program->calls[t]->buffers)  // and a kernel touches it
      EXPECT_TRUE(!b.argument() || b.touched) << str(task);
  }
}

TEST_P(Saves, ReadersAreExactlyThoseThatReadAndDroppingOneBreaksTheTask) {
  for (ValueId v : s.values.ids()) {
    std::vector<TaskId> readers;
    for (TaskId t : s.tasks.ids())
      for (ArgumentId k : s.tasks[t].inputs.ids())
        if (s.tasks[t].inputs[k] == Binding(v)) {
          readers.push_back(t);
          Step without = s;
          without.tasks[t].inputs.erase(k);
          EXPECT_FALSE(verify(without).empty()) << s.values[v].name;
        }
    EXPECT_EQ(readers, s.values[v].consumers) << s.values[v].name;
    EXPECT_FALSE(readers.empty()) << s.values[v].name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, Saves,
    testing::Combine(testing::Values("gpt2", "llama", "mlp"),
                     testing::Values(Recompute::none, Recompute::full, Recompute::layer, Recompute::selective)),
    [](const auto& i) { return std::get<0>(i.param) + "_" + std::string(name_of(std::get<1>(i.param))); });

}  // namespace
}  // namespace stretto
