#include "stretto/compile/variants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/models/family.h"

namespace stretto {
namespace {

Compiled run(const Parallel& p) {
  const ModelConfig config{
      .family = "gpt2", .layers = 2, .width = 32, .heads = 2, .context = 16, .vocab = 64, .tied = false};
  return compile(make_model(config, 16), adamw(), {.microbatches = 4}, p);
}

// Of one rank as its program has them, but for what is rounded up; traffic as the collectives in its program give it.
TEST(Variants, AreWhatProgramsHoldAndSend) {
  for (const auto& [zero, reshard] : {std::pair{0, Reshard::microbatch},
                                      {1, Reshard::microbatch},
                                      {2, Reshard::microbatch},
                                      {3, Reshard::microbatch},
                                      {3, Reshard::step}}) {
    const Compiled c = run({.names = {.data = 2, .zero = zero}, .reshard = reshard});
    const std::vector<StorageVariant> all = storage_variants(c);
    ASSERT_EQ(all.size(), 5u);
    const auto chosen = std::find_if(all.begin(), all.end(), [](const StorageVariant& v) { return v.chosen; });
    ASSERT_NE(chosen, all.end());
    EXPECT_EQ(chosen->zero, zero);
    const auto& bytes = c.program->actors[ActorId(0)].bytes;
    const auto near = [](double got, double wanted) {
      EXPECT_GE(got, wanted);
      EXPECT_LE(got, 1.1 * wanted + 64);
    };
    near(double(bytes[Arena::params]), chosen->params);
    near(double(bytes[Arena::gradients]), chosen->gradients);
    near(double(bytes[Arena::state]), chosen->state);
    double gathered = 0;  // what gathers make, of the whole step
    for (const Instruction& i : c.program->actors[ActorId(0)].code)
      if (const Start* s = std::get_if<Start>(&i); s && c.program->step->tasks[s->run.task].part == Part::U)
        for (const Binding& b : c.program->step->tasks[s->run.task].outputs)
          gathered += double(c.program->step->values[std::get<ValueId>(b)].bytes);
    if (zero < 3) continue;
    // Less than said where a piece stays gathered, or backward does not read a parameter.
    EXPECT_LE(gathered / 2, chosen->collected);
    EXPECT_GE(gathered / 2, 0.7 * chosen->collected) << name_of(reshard);
  }
}

TEST(Variants, ArePrintedWithTheRunsOwn) {
  EXPECT_THAT(variants_str(run({.names = {.data = 2, .zero = 3}, .reshard = Reshard::step})),
              testing::ContainsRegex("3 +step .*this run"));
  EXPECT_EQ(variants_str(run({.mesh = {{"pipe", 2}}})), "");
}

}  // namespace
}  // namespace stretto
