// The tasks outside the microbatch loop, for steps of a few tasks written by hand.
#include "stretto/compile/inner/epilogue.h"

#include <gmock/gmock.h>

#include <set>

#include "stretto/ops/cast.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/square.h"
#include "stretto/ops/sub.h"
#include "stretto/step/task_builder.h"
#include "support/small_models.h"
#include "support/step_text.h"

namespace stretto {
namespace {
using test::lines;
using testing::ElementsAre;
using testing::HasSubstr;

const Dim row_dim{"row", 4};

// One loss term; parameter 0 is used in both pieces, 1 in the second, 2 is frozen.
struct ByHand {
  Traced traced;
  Step step;
  explicit ByHand(int pipes = 1) {
    for (const char* name : {"tied", "own", "frozen"}) traced.params.push_back({.name = name, .dims = row_dim});
    traced.params[ParamId(2)].options.trainable = false;
    traced.scalars = {"loss.scale"};
    traced.terms = {{.name = "loss", .sum = OutputId(0), .count = OutputId(1), .scale = ScalarId(0), .weight = 2}};
    step.dims = {row_dim};
    const Type row{f32, {DimId(0)}}, number{f32, {}}, count{f64, {}};
    step.params = {row, row, row};
    step.scalars = {count};
    step.outputs = {{"loss.sum", number, 4}, {"loss.count", count, 8, true}};
    step.pieces = 2;
    BodyPool pool;
    TaskBuilder counts({.part = Part::count}), f({.part = Part::F, .piece = PieceId(1)});
    counts.result(square(counts.argument(f64, {}, InputId(0))), OutputId(1));
    f.result(square(f.argument(f32, {}, InputId(0))), OutputId(0));
    step.inputs = {number};
    step.tasks = {std::move(counts).finish(pool), std::move(f).finish(pool)};
    for (int pipe = 0; pipe < pipes; ++pipe)
      for (const auto& [param, piece] : {std::pair{0u, 0}, {0u, 1}, {1u, 1}})
        step.accumulators.push_back(
            {.param = ParamId(param), .piece = PieceId(piece), .pipe = PipeId(pipe), .type = row});
  }
  Surroundings around(int pipes = 1) const { return {.traced = traced, .microbatches = 4, .pipes = pipes}; }
};

TEST(Epilogue, ScalesComeBeforeTheFirstBackward) {
  const ByHand h;
  const WholeStep w = add_prologue(h.step, h.around());
  EXPECT_EQ(lines(w.step).back(), "scale0: outputs1 -> scalar0 | sum constant constant div constant greater where");
  EXPECT_THAT(w.scalars, ElementsAre("loss.scale"));
}

TEST(Epilogue, CombineNormClipUpdate) {
  const ByHand h;
  const WholeStep w = add_epilogue(add_prologue(h.step, h.around()), h.around(), sgd(), {.clip = 1});
  std::vector<std::string> made = lines(w.step);
  made.erase(made.begin(), made.begin() + 3);
  for (std::string& line : made) line = line.substr(0, line.find(" |"));
  EXPECT_THAT(made, ElementsAre("combine0: gradient0 gradient1 -> gradient0",  // of the tied one
                                "norm0: gradient0 -> square0",                 //
                                "norm0: gradient2 -> square1",                 //
                                "finite1: outputs0 -> square3",                // is the loss finite?
                                "clip0: squares -> scalar1 scalar2",           //
                                "update0: param0 gradient0 scalar2 scalar3 -> param0",
                                "update0: param1 gradient2 scalar2 scalar3 -> param1"));
  EXPECT_THAT(w.scalars, ElementsAre("loss.scale", "grad_norm", "clip_factor", "lr", "step"));
  EXPECT_EQ(w.step.squares, 4u);
}

TEST(Epilogue, EveryPipeHasGradientsAndALossOfItsOwn) {
  const ByHand h(2);
  const WholeStep w = add_epilogue(add_prologue(h.step, h.around(2)), h.around(2), sgd(), {});
  const std::vector<std::string> made = lines(w.step);
  EXPECT_THAT(made[3], HasSubstr("combine0: gradient0 gradient1 gradient3 gradient4 -> gradient0 | add add add"));
  EXPECT_THAT(made[4], HasSubstr("combine0: gradient2 gradient5 -> gradient2"));
  EXPECT_EQ(w.step.squares, 5u);
}

TEST(Epilogue, StatesAreReadAndWritten) {
  const ByHand h;
  const WholeStep w = add_epilogue(add_prologue(h.step, h.around()), h.around(), sgd({.momentum = 0.9}), {});
  EXPECT_THAT(lines(w.step).back(), HasSubstr("update0: param1 gradient2 state1.0 scalar3 -> param1 state1.0"));
}

// Where the norm is not finite everything stays as it is: a select at the end of the update's own kernel.
TEST(Epilogue, UpdatesKeepWhatWasThereUnlessTheNormIsFinite) {
  const ByHand h;
  const WholeStep w =
      add_epilogue(add_prologue(h.step, h.around()), h.around(), sgd({.momentum = 0.9}), {.skip_nonfinite = true});
  EXPECT_THAT(w.scalars, ElementsAre("loss.scale", "grad_norm", "clip_factor", "finite", "lr", "step"));
  EXPECT_THAT(lines(w.step), testing::Contains(HasSubstr("clip0: squares -> scalar1 scalar2 scalar3 |")));
  const std::string update = lines(w.step).back();
  EXPECT_THAT(update, HasSubstr("update0: param1 gradient2 state1.0 scalar4 scalar3 -> param1 state1.0 |"));
  EXPECT_THAT(update, testing::EndsWith("where where"));
}

TEST(Epilogue, SkippingCostsNoPassOfItsOwn) {
  for (const Optimizer& o : {adamw(), lion(), sgd({.momentum = 0.9})}) {
    const auto calls = [&](bool skip) {
      const Compiled c = compile(make_model(tiny("gpt2"), 8), o, {.clip = 1, .skip_nonfinite = skip});
      std::vector<std::size_t> sizes;
      for (TaskId t : c.program->calls.ids())
        if (c.program->step->tasks[t].part == Part::update) sizes.push_back(c.program->calls[t]->calls.size());
      return sizes;
    };
    EXPECT_EQ(calls(true), calls(false)) << o.name;
  }
}

// Parameters of one kind have one body, which is traced once; what it reads and writes is each one's own.
TEST(Epilogue, ParametersAreUpdatedAlikeByOneBody) {
  int traced = 0;
  const auto update = [&](Trace&, Slice s) {
    ++traced;
    s.state["sum"] = s.state["sum"] + s.grad;
    s.param = s.param - s.state["sum"];
    return s;
  };
  const Optimizer counting{.name = "counting", .state = {"sum"}, .update = update, .state_dtype = bf16};
  const Compiled c = compile(make_model(tiny("gpt2", 6), 8), counting, {});
  const Step& step = *c.program->step;
  int updates = 0;
  std::set<u64> keys;
  for (const Task& t : step.tasks) {
    if (t.part != Part::update) continue;
    ++updates;
    const auto of = [&](const Binding& b) {
      if (const ParamId* p = as<ParamId>(b)) return *p;
      if (const StateId* s = as<StateId>(b)) return s->param;
      const AccumulatorId* a = as<AccumulatorId>(b);
      return a ? step.accumulators[*a].param : t.param();
    };
    for (const Binding& b : t.inputs) EXPECT_EQ(of(b), t.param());
    for (const Binding& b : t.outputs) EXPECT_EQ(of(b), t.param());
    keys.insert(t.keys.begin(), t.keys.end());
  }
  EXPECT_LT(3 * traced, updates);
  EXPECT_EQ(std::ssize(keys), updates) << "how a state is rounded is each one's own";
}

// An optimizer may declare a state that its update leaves alone.
TEST(Epilogue, AStateThatIsLeftAloneIsKept) {
  const ByHand h;
  const Optimizer lazy{.name = "lazy", .state = {"seen"}, .update = [](Trace&, Slice s) {
                         s.param = s.param - s.grad;
                         return s;
                       }};
  const WholeStep w = add_epilogue(add_prologue(h.step, h.around()), h.around(), lazy, {});
  EXPECT_EQ(lines(w.step).back(), "update0: param1 gradient2 state1.0 -> param1 state1.0 | sub copy");
}

TEST(Epilogue, RefusesOptimizersThatAreNotWhole) {
  const ByHand h;
  const auto message = [&](Optimizer o) {
    try {
      add_epilogue(add_prologue(h.step, h.around()), h.around(), o, {});
      return std::string();
    } catch (const Error& e) {
      return std::string(e.what());
    }
  };
  EXPECT_THAT(message({.name = "a", .update = [](Trace&, Slice) { return Slice{}; }}),
              HasSubstr("'a' returns no new parameter"));
  EXPECT_THAT(message({.name = "b",
                       .update =
                           [](Trace& t, Slice s) {
                             s.param = s.param * cast(t.scalar("moon"), f32);
                             return s;
                           }}),
              HasSubstr("'b' asks for the scalar 'moon', which nobody sets"));
  EXPECT_THAT(message({.name = "c",
                       .state = {"m"},
                       .update =
                           [](Trace&, Slice s) {
                             s.state.clear();
                             return s;
                           }}),
              HasSubstr("'c' returns no new state 'm'"));
}

}  // namespace
}  // namespace stretto
