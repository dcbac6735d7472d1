#include "stretto/compile/stages.h"

#include <gmock/gmock.h>

#include "stretto/step/keeps.h"
#include "support/small_models.h"

namespace stretto {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

Compiled compiled(const std::string& family, const Parallel& p) {
  return compile(make_model(tiny(family, 4), 8), adamw(), {.microbatches = 4}, p);
}

TEST(Stages, NothingIsLeftOut) {
  for (const char* family : {"gpt2", "llama", "mlp"})
    for (const Parallel& p : {Parallel{}, Parallel{.mesh = {{"pipe", 2}}, .schedule = "zb-v"},
                              Parallel{.mesh = {{"pipe", 2}}, .schedule = "dualpipe"}}) {
      if (std::string(family) == "mlp" && !p.mesh.empty()) continue;
      const Compiled c = compiled(family, p);
      EXPECT_TRUE(verify_stages(c).empty());
      EXPECT_THAT(stages_str(c), AllOf(HasSubstr("Nothing is left out: "), Not(HasSubstr("LEFT OUT"))));
    }
}

TEST(Stages, WhatIsLeftOutIsNamed) {
  Compiled c = compiled("gpt2", {});
  Program p = *c.program;
  Step step = *p.step;
  step.tasks.clear();
  for (const Task& t : p.step->tasks)
    if (t.part != Part::F || t.piece != PieceId(3)) step.tasks.push_back(t);
  step.accumulators.clear();
  for (const Accumulator& a : p.step->accumulators)
    if (c.params[a.param].name != "h.2.o") step.accumulators.push_back(a);
  p.step = std::make_shared<const Step>(step);
  c.program = std::make_shared<const Program>(p);
  std::string all;
  for (const Fault& f : verify_stages(c)) all += f.str() + "\n";
  EXPECT_THAT(all, AllOf(HasSubstr("piece 3 computes nothing"), HasSubstr("no stage reads parameter 'h.1.qkv'"),
                         HasSubstr("no stage makes the gradient of parameter 'h.2.o'")));
}

TEST(Stages, EveryStageHasARow) {
  const Compiled c = compiled("gpt2", {.mesh = {{"pipe", 2}}, .schedule = "zb-v"});
  const std::string text = stages_str(c);
  EXPECT_THAT(text, ContainsRegex("\n0 +0 +[0-9]+ +h\\.0"));
  EXPECT_THAT(text, ContainsRegex("\n3 +0 +[0-9]+ +h\\.3 ln_f"));
  EXPECT_THAT(text, ContainsRegex("\nall +10 "));
  EXPECT_THAT(text, HasSubstr("in more than one stage"));  // the tied embedding
  for (int stage = 0; stage < 4; ++stage)
    EXPECT_THAT(text, HasSubstr(fmt::format("\nstage {} keeps, per microbatch:\n  F until I: ", stage)));
  EXPECT_THAT(text, HasSubstr("h.1/gelu{"));
}

TEST(Stages, AHeadThatLimitsIsNamed) {
  ModelConfig config = tiny("llama", 4);
  const auto text = [&](const char* schedule, int actors) {
    const Parallel p{.mesh = {{"pipe", actors}}, .schedule = schedule};
    return stages_str(compile(make_model(config, 8), adamw(), {.microbatches = 4}, p));
  };
  EXPECT_THAT(text("1f1b", 4), Not(HasSubstr("is a single piece")));
  config.vocab = 5000;
  EXPECT_THAT(text("1f1b", 4),
              ContainsRegex("Stage 3 is a single piece \\(head\\) and takes [0-9.]+% of the time, an actor's "
                            "share is 25.0%: no cut makes the step shorter.\nCut the head: model.head_parts = [0-9]+"));
  // Less than an actor's share, but far longer than other stages.
  config.vocab = 1600;
  EXPECT_THAT(text("1f1b", 2), Not(HasSubstr("is a single piece")));
  EXPECT_THAT(text("zb-v", 2), ContainsRegex("Stage 3 is a single piece \\(head\\) and takes [0-9.]+% of the time, an "
                                             "even stage 25.0%: the other stages wait for it"));
}

// The parts that are advised are enough.
TEST(Stages, AHeadInPartsLimitsNoLonger) {
  ModelConfig config = tiny("llama", 4);
  config.vocab = 5000;
  const auto made = [&] {
    return compile(make_model(config, 8), adamw(), {.microbatches = 4}, {.mesh = {{"pipe", 4}}});
  };
  const std::optional<Limit> whole = limit_of(made());
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->stage, StageId(3));
  EXPECT_GT(whole->takes, whole->share);
  config.head_parts = 2;
  const std::optional<Limit> halves = limit_of(made());
  ASSERT_TRUE(halves);
  EXPECT_GT(halves->head_parts, 2);
  config.head_parts = whole->head_parts;
  EXPECT_FALSE(limit_of(made())) << whole->head_parts;
}

// A dense layer with an activation: backward of the activation reads what went into it, the weight's gradient reads
// what the weight was multiplied with.
TEST(Stages, KeepWhatTheTextbookSays) {
  const Model model = [](Trace& t) {
    const Dim batch = t.batch("batch", 32), in{"in", 16}, hidden{"hidden", 48}, out{"out", 8};
    Tensor x = boundary(contract(t.input("x", {batch, in}), t.param("first", {in, hidden}), in));
    x = boundary(contract(gelu(x), t.param("second", {hidden, out}), hidden));
    return mean_of(square(x));
  };
  const Compiled c = compile(model, sgd(), {.microbatches = 4}, {.mesh = {{"pipe", 3}}, .schedule = "zb-h1"});
  const std::vector<StageKeeps> k = keeps(*c.program->step, c.program->stage_of).list();
  ASSERT_EQ(k.size(), 3u);
  const u64 rows = 8, f = 4;
  EXPECT_EQ(k[0].until_i + k[0].until_w + k[0].for_w, 0u);  // x comes from the batch, its gradient from stage 1
  EXPECT_EQ(k[1].until_i, rows * 48 * f);                   // what gelu read
  EXPECT_EQ(k[1].until_w, rows * 48 * f);                   // what gelu made
  EXPECT_EQ(k[1].for_w, rows * 8 * f);                      // the arriving gradient
  EXPECT_TRUE(std::any_of(k[1].values.begin(), k[1].values.end(), [](const Keep& x) { return x.arrives; }));
}

}  // namespace
}  // namespace stretto
