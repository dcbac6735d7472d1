#include "stretto/compile/inner/differentiated.h"

#include <gmock/gmock.h>

#include "compile/two_layers.h"

namespace stretto {
namespace {
using testing::ElementsAre;

TEST(Differentiated, OneGradientPerParameterAndPiece) {
  const Traced t = trace_step(test::two_layers, {});
  const StepGraph s = differentiated(t);
  std::vector<std::string> gradients;
  for (const StepGraph::Grad& g : s.gradients)
    gradients.push_back(fmt::format("{} in {}", t.params[g.param].name, g.piece.value));
  EXPECT_THAT(gradients, ElementsAre("w in 0", "w in 1", "shift in 1")) << "the frozen one has none";
  EXPECT_EQ(s.outputs.size(), t.step.outputs.size());
}

TEST(Differentiated, AParameterMustReachTheLoss) {
  const Model model = [](Trace& t) {
    t.param("lost", {Dim{"a", 2}});
    return mean_of(t.input("x", {t.batch("batch", 4)}) * t.param("w", {}));
  };
  try {
    differentiated(trace_step(model, {}));
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(),
                 "[model] parameter 'lost' does not reach the loss; hint: remove it, use it, or make it not trainable");
  }
}

TEST(Differentiated, VerifierFindsGradientsOfNothing) {
  StepGraph s = differentiated(trace_step(test::two_layers, {}));
  EXPECT_TRUE(verify(s).empty());
  s.gradients[AccumulatorId(2)].param = ParamId(7);
  s.gradients[AccumulatorId(1)].value.node = NodeId(s.graph.nodes.size());
  ASSERT_EQ(verify(s).size(), 2u);
  EXPECT_EQ(verify(s)[1].what, "a gradient is of parameter 7, and there are 3");
}

TEST(Differentiated, VerifierFindsGradientsOutOfOrder) {
  StepGraph s = differentiated(trace_step(test::two_layers, {}));
  std::swap(s.gradients[AccumulatorId(0)], s.gradients[AccumulatorId(1)]);
  ASSERT_EQ(verify(s).size(), 1u);
  EXPECT_EQ(verify(s)[0].what, "gradients are not in the order of parameters and pieces");
}

}  // namespace
}  // namespace stretto
