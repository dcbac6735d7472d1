// split() on graphs of a few nodes, written by hand.
#include <gmock/gmock.h>

#include "stretto/ops/boundary.h"
#include "stretto/ops/contract.h"
#include "stretto/ops/input.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/param.h"
#include "stretto/ops/square.h"
#include "stretto/ops/sum.h"
#include "stretto/step/split.h"
#include "support/step_text.h"

namespace stretto {
namespace {
using test::lines;
using test::values;
using testing::ElementsAre;

const Dim rows_dim{"rows", 2}, in_dim{"in", 3}, mid_dim{"mid", 4};

// loss = sum(square(square(x w) v)) over two pieces, with gradients.
struct TwoPieces {
  Builder b;
  StepGraph step;
  TwoPieces() {
    const Tensor x = input(b, "x", f32, {rows_dim, in_dim}), w = param(b, "w", f32, {in_dim, mid_dim}),
                 v = param(b, "v", f32, mid_dim);
    const Tensor h = contract(x, w, in_dim), h2 = square(h);
    const Tensor cut = boundary(h2), y = cut * v;
    const Tensor loss = sum(y, y.dims());
    b.backward = true;
    b.force_piece = 1;
    const Tensor dv = sum(cut, rows_dim), dcut = v * 2;  // of inputs: a lower piece needs it
    b.force_piece = 0;
    const Tensor dh = dcut * h, dw = contract(x, dh, rows_dim);
    step.params = {w.value, v.value};
    step.inputs = {x.value};
    step.outputs = {{"loss", loss.value}};
    step.gradients = {{ParamId(0), PieceId(0), dw.value}, {ParamId(1), PieceId(1), dv.value}};
    step.graph = std::move(b.graph);
  }
};

TEST(SplitByHand, PhasesOfTwoPieces) {
  const Step s = split(TwoPieces().step);
  EXPECT_EQ(s.pieces, 2);
  EXPECT_THAT(lines(s), ElementsAre("F0: input0 param0 -> value1 value2 | contract square",
                                    "W0: value0 value1 input0 -> gradient0 | mul contract",
                                    "F1: value2 param1 -> output0 | boundary mul sum",
                                    "I1: param1 -> value0 | constant mul",       // a lower piece needs it
                                    "W1: value2 -> gradient1 | boundary sum"));  // the view is made again
  EXPECT_THAT(values(s), ElementsAre("I1 -> W0", "F0 -> W0", "F0 -> F1 W1"));
}

TEST(SplitByHand, FullRecomputeKeepsWhatArrives) {
  const Step s =
      split(TwoPieces().step, {.recompute = {Recompute::full, Recompute::full}, .stage_of = {StageId(0), StageId(1)}});
  EXPECT_THAT(lines(s),
              ElementsAre("F0: input0 param0 -> value2 | contract square", "R0: input0 param0 -> value1 | contract",
                          "W0: value0 value1 input0 -> gradient0 | mul contract",
                          "F1: value2 param1 -> output0 | boundary mul sum",
                          "I1: param1 -> value0 | constant mul",  //
                          "W1: value2 -> gradient1 | boundary sum"));
}

TEST(SplitByHand, NothingIsMadeThatNobodyReads) {
  TwoPieces two;
  two.step.gradients.erase(AccumulatorId(0));
  EXPECT_THAT(lines(split(two.step)),
              ElementsAre("F0: input0 param0 -> value0 | contract square",
                          "F1: value0 param1 -> output0 | boundary mul sum", "W1: value0 -> gradient0 | boundary sum"));
}

TEST(SplitByHand, CountsAreMadeFromInputsAlone) {
  Builder b;
  StepGraph s;
  const Tensor x = input(b, "x", f32, rows_dim), w = param(b, "w", f32, {});
  const Tensor used = sum(x * w, rows_dim), count = sum(square(x), rows_dim);
  s.params = {w.value};
  s.inputs = {x.value};
  s.outputs = {{"sum", used.value}, {"count", count.value, true}};
  s.graph = b.graph;
  EXPECT_THAT(lines(split(s)),
              ElementsAre("count0: input0 -> output1 | square sum", "F0: input0 param0 -> output0 | mul sum"));
  s.outputs[OutputId(0)].count = true;
  EXPECT_THROW(split(s), Error);
}

}  // namespace
}  // namespace stretto
