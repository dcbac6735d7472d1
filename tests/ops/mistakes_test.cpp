// What a user is told after the most likely mistakes: the operation, the real dims, what to do.
#include <gtest/gtest.h>

#include <limits>

#include "stretto/ops/add.h"
#include "stretto/ops/broadcast.h"
#include "stretto/ops/cast.h"
#include "stretto/ops/compare.h"
#include "stretto/ops/concat.h"
#include "stretto/ops/contract.h"
#include "stretto/ops/div.h"
#include "stretto/ops/dropout.h"
#include "stretto/ops/exp.h"
#include "stretto/ops/fold.h"
#include "stretto/ops/gelu.h"
#include "stretto/ops/index.h"
#include "stretto/ops/input.h"
#include "stretto/ops/max.h"
#include "stretto/ops/mean.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/permute.h"
#include "stretto/ops/rename.h"
#include "stretto/ops/slice.h"
#include "stretto/ops/stack.h"
#include "stretto/ops/sum.h"
#include "stretto/ops/where.h"

namespace stretto {
namespace {

class Mistakes : public testing::Test {
 protected:
  Builder b;
  const Dim batch{"batch", 8}, seq{"seq", 16}, model{"model", 32}, ff{"ff", 64}, three{"three", 3};
  const Tensor x = input(b, "x", f32, {batch, seq, model});
  const Tensor ids = input(b, "ids", i32, {batch, seq});

  template <class F>
  void expect(const F& mistake, const std::string& text) {
    const std::size_t before = b.graph.nodes.size();
    try {
      mistake();
      ADD_FAILURE() << "was accepted; expected: " << text;
    } catch (const Error& e) {
      EXPECT_EQ(std::string(e.what()), text);
      EXPECT_EQ(e.kind(), Error::Kind::input);
    }
    EXPECT_TRUE(verify(b.graph).empty());
    EXPECT_LE(b.graph.nodes.size(), before + 1) << "a failed operation leaves no node (a constant at most)";
  }
};

TEST_F(Mistakes, AddOfTensorsThatEachLackADim) {
  const Tensor w = input(b, "w", f32, {model, ff});
  expect([&] { x + w; },
         "[add] w{model=32 ff=64} has dim 'ff' that x{batch=8 seq=16 model=32} lacks, and the other way round; "
         "hint: rename 'ff' if the two mean the same, or broadcast one operand explicitly");
}

TEST_F(Mistakes, ArithmeticOnIds) {
  expect([&] { x* ids; },
         "[mul] x{batch=8 seq=16 model=32} is f32 and ids{batch=8 seq=16} is i32; "
         "hint: cast one of them: cast(x, f32)");
}

TEST_F(Mistakes, TwoFloatTypes) {
  const Tensor y = input(b, "y", f64, {model});
  expect([&] { x + y; },
         "[add] x{batch=8 seq=16 model=32} is f32 and y{model=32} is f64; hint: cast one of them: cast(x, f32)");
}

TEST_F(Mistakes, FunctionOfIntegers) {
  expect([&] { gelu(ids); }, "[gelu] ids{batch=8 seq=16} holds integers; hint: cast it first: cast(x, f32)");
}

TEST_F(Mistakes, FractionBesideIntegers) {
  expect([&] { less(ids, 2.5); },
         "[less] ids{batch=8 seq=16} holds integers and 2.5 is none; hint: cast it first: cast(x, f32)");
}

TEST_F(Mistakes, MeanOfIntegers) {
  expect([&] { mean(ids, seq); }, "[mean] ids{batch=8 seq=16} holds integers; hint: cast it first: cast(x, f32)");
}

TEST_F(Mistakes, RenameOfADimThatIsNotThere) {
  expect(
      [&] {
        rename(x, Dim{"sek", 16}, Dim{"seq_k", 16});
      },
      "[rename] x{batch=8 seq=16 model=32} has no dim 'sek'; "
      "hint: did you mean 'seq'? its dims are batch, seq, model");
}

TEST_F(Mistakes, RenameToAnotherSize) {
  expect(
      [&] {
        rename(x, seq, Dim{"half", 8});
      },
      "[rename] seq=16 cannot become half=8: the sizes differ (in x{batch=8 seq=16 model=32}); "
      "hint: make the new dim with seq.like(\"half\"), or slice first");
}

TEST_F(Mistakes, RenameToADimThatIsThereAlready) {
  const Tensor square = input(b, "square", f32, {model, model.like("model2")});
  expect([&] { rename(square, model.like("model2"), model); },
         "[rename] the result would have dim 'model' twice: {model=32 model=32}; hint: rename one of the two first");
}

TEST_F(Mistakes, SumOverADimThatIsNotThere) {
  expect([&] { sum(x, ff); }, "[sum] x{batch=8 seq=16 model=32} has no dim 'ff'; hint: its dims are batch, seq, model");
}

TEST_F(Mistakes, SumOverADimTwice) {
  expect(
      [&] {
        sum(x, {seq, seq});
      },
      "[sum] dim 'seq' of x{batch=8 seq=16 model=32} is named twice; hint: name it once");
}

TEST_F(Mistakes, MaxOfAScalar) {
  const Tensor s = input(b, "s", f32, {});
  expect([&] { max(s, seq); }, "[max] s{} has no dim 'seq'; hint: its dims are none");
}

TEST_F(Mistakes, OneNameWithTwoSizes) {
  expect(
      [&] {
        input(b, "y", f32, Dim{"seq", 17});
      },
      "[dim] dim 'seq' is 17 here and was 16 before; "
      "hint: a name has one size in a program; give one of the two another name");
}

TEST_F(Mistakes, OneNameMadeInTwoWays) {
  b.intern(seq.whole("seq_k"));
  expect([&] { input(b, "y", f32, seq.like("seq_k")); },
         "[dim] dim 'seq_k' was made in two ways (like, whole or padded differ); "
         "hint: make it once and pass the Dim on, or use two names");
}

TEST_F(Mistakes, ADimWithoutSize) {
  expect([&] { input(b, "y", f32, Dim{"heads"}); }, "[dim] dim 'heads' has size 0; hint: sizes are at least 1");
}

TEST_F(Mistakes, ADimTwiceInOneTensor) {
  expect(
      [&] {
        input(b, "y", f32, {seq, seq});
      },
      "[input] the result would have dim 'seq' twice: {seq=16 seq=16}; hint: rename one of the two first");
}

TEST_F(Mistakes, AnEmptyTensor) {
  Tensor nothing;
  expect([&] { x + nothing; },
         "[add] operand 2 is an empty Tensor; hint: make it with t.input, t.param or an operation first");
  expect([&] { exp(nothing); },
         "[exp] all operands are empty Tensors; hint: make them with t.input, t.param or an operation first");
  expect([&] { nothing.dims(); },
         "[tensor] this Tensor is empty; hint: make it with t.input, t.param or an operation first");
}

TEST_F(Mistakes, ATensorOfAnotherProgram) {
  Builder other;
  const Tensor y = input(other, "y", f32, {model});
  expect([&] { x + y; },
         "[add] operand 2 belongs to another traced program; hint: Tensors cannot be kept from one trace to the next");
}

TEST_F(Mistakes, AskingForADimByAWrongName) {
  expect([&] { x.dim("models"); },
         "[dim] x{batch=8 seq=16 model=32} has no dim 'models'; hint: its dims are batch, seq, model");
}

TEST_F(Mistakes, AConditionThatIsNotOne) {
  expect([&] { where(x, x, 0); },
         "[where] the condition x{batch=8 seq=16 model=32} is f32; hint: make it with a comparison: greater(x, 0)");
}

TEST_F(Mistakes, DivisionOfIntegers) {
  expect([&] { ids / 2; }, "[div] ids{batch=8 seq=16} holds integers; hint: cast it first: cast(x, f32)");
}

TEST_F(Mistakes, CastToAStorageType) {
  expect([&] { cast(x, f16); },
         "[cast] x{batch=8 seq=16 model=32} cannot be cast from f32 to f16; "
         "hint: f16 exists in files only; compute in bf16, f32 or f64");
}

TEST_F(Mistakes, BroadcastThatForgetsADim) {
  expect(
      [&] {
        broadcast(input(b, "y", f32, {model}), {batch, seq});
      },
      "[broadcast] y{model=32} has dim 'model', which is not in {batch=8 seq=16}; "
      "hint: name all dims of the result, the old ones too");
}

TEST_F(Mistakes, PermuteThatForgetsADim) {
  expect(
      [&] {
        permute(x, {model, batch});
      },
      "[permute] x{batch=8 seq=16 model=32} cannot be ordered as {model=32 batch=8}; "
      "hint: name each of its dims once; broadcast adds dims, sum removes them");
}

TEST_F(Mistakes, UnstackOfAnotherNumber) {
  const Tensor z = input(b, "z", f32, {three, model});
  expect([&] { unstack<2>(z, three); },
         "[unstack] unstack<2> of dim three=3 (of z{three=3 model=32}); hint: write unstack<3>");
}

TEST_F(Mistakes, StackOfAnotherNumber) {
  expect(
      [&] {
        stack({x, x}, three);
      },
      "[stack] 2 tensors along dim three=3; hint: give one tensor per element of 'three'");
}

TEST_F(Mistakes, StackOfDifferentTensors) {
  const Tensor y = input(b, "y", f32, {seq, batch, model});
  expect(
      [&] {
        stack({x, y}, Dim{"two", 2});
      },
      "[stack] x{batch=8 seq=16 model=32} (f32) and y{seq=16 batch=8 model=32} (f32) differ; "
      "hint: all parts have the same dims in the same order and the same type");
}

TEST_F(Mistakes, IndexBeyondTheEnd) {
  expect([&] { index(x, seq, 16); },
         "[index] there is no element 16 along 'seq' (of x{batch=8 seq=16 model=32}); hint: the elements are 0 to 15");
}

TEST_F(Mistakes, SliceBeyondTheEnd) {
  expect(
      [&] {
        slice(x, seq, Dim{"part", 10}, 8);
      },
      "[slice] part=10 from 8 does not lie within seq=16 (of x{batch=8 seq=16 model=32}); "
      "hint: start plus the smaller size must be at most 16");
}

TEST_F(Mistakes, ConcatThatDoesNotAddUp) {
  expect(
      [&] {
        concat({x, x}, seq, Dim{"long", 30});
      },
      "[concat] seq=16 + seq=16 is not long=30; hint: the sizes of the parts must add up");
}

TEST_F(Mistakes, DropoutThatDropsAll) {
  expect([&] { dropout(x, 1.0); },
         "[dropout] the rate for x{batch=8 seq=16 model=32} is 1; hint: give a probability: 0 or more, below 1");
}

TEST_F(Mistakes, TwoDropoutsOfOneName) {
  dropout(x, 0.1, "attention");
  expect([&] { dropout(x, 0.1, "attention"); },
         "[dropout] 'attention' is the name of another dropout: both would zero the same elements; "
         "hint: give it another name, or none, or put it under a Scope");
}

TEST_F(Mistakes, ASharedDimThatContractIsNotToldAbout) {
  const Tensor y = input(b, "y", f32, {batch, model, ff});
  expect([&] { contract(x, y, model); },
         "[contract] dim 'batch' is in both operands and named in neither over nor along: "
         "x{batch=8 seq=16 model=32} times y{batch=8 model=32 ff=64}; "
         "hint: sum over it: contract(a, b, batch), keep it: along(batch), or rename it in one operand");
}

TEST_F(Mistakes, ContractOverADimThatOneLacks) {
  const Tensor w = input(b, "w", f32, {ff, model});
  expect([&] { contract(x, w, ff); },
         "[contract] dim 'ff' is named in over but x{batch=8 seq=16 model=32} lacks it: "
         "x{batch=8 seq=16 model=32} times w{ff=64 model=32}; "
         "hint: rename the dim that corresponds to 'ff', or leave it out of over");
}

TEST_F(Mistakes, TheScopeIsPartOfTheMessage) {
  b.scope = b.intern_scope("h.3");
  const Tensor h = gelu(x);
  expect([&] { sum(h, ff); },
         "[sum] h.3/gelu{batch=8 seq=16 model=32} has no dim 'ff'; hint: its dims are batch, seq, model");
}

TEST_F(Mistakes, WindowsThatReachBeyond) {
  const Dim place{"place", 8}, tap{"tap", 3};
  expect(
      [&] {
        unfold(x, seq, {place, tap}, {2, 1});
      },
      "[unfold] from 0 in steps of 2, 1 it does not lie within seq=16 (of x{batch=8 seq=16 model=32}); "
      "hint: start, plus every step times its size less one, must be below 16");
  const i64 huge = std::numeric_limits<i64>::max();
  for (const i64 step : {i64(0), i64(-1), huge}) {
    EXPECT_THROW(unfold(x, seq, {place}, {step}), Error);
    EXPECT_THROW(unfold(x, seq, {place}, {1}, step == 0 ? huge : -1), Error);
  }
  expect(
      [&] {
        unfold(x, seq, {place, tap}, {1});
      },
      "[unfold] there are 2 dims and 1 steps; hint: give a step for each dim");
  EXPECT_THROW(unfold(x, seq, {tap, tap}, {3, 1}), Error);
  EXPECT_THROW(unfold(x, seq, {model}, {1}), Error);
}

TEST_F(Mistakes, RefoldOfAnotherNumberOfElements) {
  expect(
      [&] {
        refold(x, {seq, model}, {Dim{"a", 5}, Dim{"b", 100}});
      },
      "[refold] 2 dims of 512 elements become 2 of 500; hint: both have the same number of elements");
}

}  // namespace
}  // namespace stretto
