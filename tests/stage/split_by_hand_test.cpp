// split() on graphs of a few nodes, written by hand.
#include <gmock/gmock.h>

#include "stretto/ops/boundary.h"
#include "stretto/ops/contract.h"
#include "stretto/ops/input.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/param.h"
#include "stretto/ops/relu.h"
#include "stretto/ops/square.h"
#include "stretto/ops/sum.h"
#include "stretto/stage/split.h"
#include "support/step_text.h"

namespace stretto {
namespace {
using testing::ElementsAre;
using test::lines;
using test::values;

const Dim kRows{"rows", 2}, kIn{"in", 3}, kMid{"mid", 4};

// loss = sum(square(square(x w) v)) over two pieces, with gradients.
struct TwoPieces {
  Builder b;
  StepGraph step;
  TwoPieces() {
    const Tensor x = input(b, "x", f32, {kRows, kIn}), w = param(b, "w", f32, {kIn, kMid}), v = param(b, "v", f32, kMid);
    const Tensor h = contract(x, w, kIn), h2 = square(h);
    const Tensor cut = boundary(h2), y = cut * v;
    const Tensor loss = sum(y, y.dims());
    b.backward = true;
    b.force_piece = 1;
    const Tensor dv = sum(cut, kRows), dcut = v * 2;  // of inputs: a lower piece needs it
    b.force_piece = 0;
    const Tensor dh = dcut * h, dw = contract(x, dh, kRows);
    step.params = {w.value, v.value};
    step.inputs = {x.value};
    step.outputs = {{"loss", loss.value}};
    step.gradients = {{0, 0, dw.value}, {1, 1, dv.value}};
    step.graph = std::move(b.graph);
  }
};

TEST(SplitByHand, PhasesOfTwoPieces) {
  const Step s = split(TwoPieces().step);
  EXPECT_EQ(s.pieces, 2);
  EXPECT_THAT(lines(s), ElementsAre("F0: input0 param0 -> value0 value1 | contract square",
                                    "W0: value2 value0 input0 -> gradient0 | mul contract",
                                    "F1: value1 param1 -> output0 value3 | boundary mul sum",
                                    "I1: param1 -> value2 | mul",
                                    "W1: value3 -> gradient1 | sum"));
}

}  // namespace
}  // namespace stretto
