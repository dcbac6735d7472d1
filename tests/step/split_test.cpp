#include "stretto/step/split.h"

#include <gtest/gtest.h>

#include <set>

#include "stretto/ops/ops.h"
#include "support/small_models.h"

namespace stretto {
namespace {

const Step& step_of(const Compiled& c) { return *c.program->step; }

TEST(Split, EveryPieceHasItsPhases) {
  const Compiled c = compile(make_model(tiny("gpt2"), 4), adamw());
  const Step& s = step_of(c);
  ASSERT_EQ(s.pieces, 1 + 2 * 2 + 1);  // embedding, two halves per layer, head
  for (PieceId p : s.piece_ids()) {
    EXPECT_NE(s.find(Part::F, p), nullptr) << p.value;
    EXPECT_NE(s.find(Part::W, p), nullptr) << p.value;
    EXPECT_EQ(s.find(Part::I, p) != nullptr, p.value > 0) << "the first piece has no inputs that need gradients";
  }
}

TEST(Split, EqualLayersShareTheirBodies) {
  const Compiled c = compile(make_model(tiny("llama", 4), 4), adamw());
  const Step& s = step_of(c);
  for (Part part : {Part::F, Part::I, Part::W})
    for (int p = 5; p < s.pieces - 1; ++p)  // the first layer reads the embedding under another name
      EXPECT_EQ(s.find(part, PieceId(p))->body, s.find(part, PieceId(p - 2))->body) << name_of(part) << p;
}

TEST(Split, KeepsOnlyWhatIsRead) {
  const Compiled c = compile(make_model(tiny("gpt2"), 4), adamw());
  const Step& s = step_of(c);
  for (const CrossValue& v : s.values) EXPECT_FALSE(v.consumers.empty()) << v.name;
  std::set<ValueId> made;
  for (const Task& t : s.tasks)
    for (const Binding& b : t.outputs)
      if (const ValueId* v = as<ValueId>(b)) { EXPECT_TRUE(made.insert(*v).second) << "made twice"; }
  EXPECT_EQ(made.size(), s.values.size());
}

TEST(Split, TiedWeightsHaveOneAccumulatorPerPiece) {
  const Compiled c = compile(make_model(tiny("gpt2"), 4), adamw());
  EXPECT_EQ(c.params[ParamId(0)].name, "wte");
  EXPECT_EQ(c.params[ParamId(0)].accumulators.size(), 2u);
  EXPECT_NE(std::find_if(step_of(c).tasks.begin(), step_of(c).tasks.end(),
                         [](const Task& t) { return t.part == Part::combine; }),
            step_of(c).tasks.end());
}

TEST(Split, FrozenParametersCostNothing) {
  const Model model = [](Trace& t) {
    const Dim batch = t.batch("batch", 4), in{"in", 3}, mid{"mid", 5}, out{"out", 2};
    const Tensor x = t.input("x", {batch, in});
    const Tensor h = contract(x, t.param("frozen", {in, mid}, {.trainable = false}), in);
    return mean_of(square(contract(h, t.param("w", {mid, out}), mid)));
  };
  const Compiled c = compile(model, adamw());
  EXPECT_TRUE(c.params[ParamId(0)].accumulators.empty());
  EXPECT_FALSE(c.program->actors[ActorId(0)].state_at[(StateId{ParamId(0), 0})]);
  int contractions = 0;
  for (const Task& t : step_of(c).tasks)
    for (const Node& n : t.body->nodes) contractions += n.op == &contract_op;
  EXPECT_EQ(contractions, 3);  // two forward, one weight gradient; none for the frozen one
}

TEST(Split, CountThatDependsOnParametersIsRefused) {
  const Model model = [](Trace& t) {
    const Dim batch = t.batch("batch", 4);
    const Tensor x = t.input("x", {batch}) * t.param("w", {});
    return ratio_of(sum(x, {batch}), sum(x, {batch}));
  };
  try {
    compile(model, sgd());
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(),
                 "[loss] the count of 'ratio.count' depends on parameters: cast{}; hint: counts are needed before the "
                 "first backward; make "
                 "them from inputs only");
  }
}

}  // namespace
}  // namespace stretto
