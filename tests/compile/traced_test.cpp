#include "stretto/compile/traced.h"

#include <gmock/gmock.h>

#include "compile/two_layers.h"
#include "support/message.h"

namespace stretto {
namespace {
using test::two_layers;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Traced, IsTheModelAsPlainData) {
  const Traced t = trace_step(two_layers, {.microbatches = 2});
  std::vector<std::string> names;
  for (const TracedParam& p : t.params) names.push_back(p.name);
  EXPECT_THAT(names, ElementsAre("w", "scale", "shift"));
  EXPECT_FALSE(t.params[ParamId(1)].options.trainable);
  ASSERT_EQ(t.inputs.size(), 1u);
  EXPECT_EQ(t.inputs[InputId(0)].name, "x");
  EXPECT_EQ(t.inputs[InputId(0)].dims[0].size, 4) << "of one microbatch";
  EXPECT_EQ(t.batch, "batch");
  EXPECT_EQ(t.rows_per_step, 8);
  ASSERT_EQ(t.terms.size(), 1u);
  EXPECT_TRUE(t.step.outputs[t.terms[TermId(0)].count].count);
  EXPECT_FALSE(t.step.outputs[t.terms[TermId(0)].sum].count);
  EXPECT_EQ(t.scalars.size(), 1u) << "the term's scale";
  ASSERT_EQ(t.metrics.size(), 1u);
  EXPECT_EQ(t.step.outputs[t.metrics[0].output].name, "size");
  EXPECT_TRUE(t.step.gradients.empty());
}

std::string refusal(const Model& model) {
  return refusal_of([&] { trace_step(model, {}); });
}

TEST(Traced, RefusesWhatIsNoLoss) {
  EXPECT_THAT(refusal([](Trace&) { return Loss{}; }), HasSubstr("the loss has no terms"));
  EXPECT_THAT(refusal([](Trace& t) {
                return mean_of(t.param("w", {Dim{"a", 2}}));
              }),
              HasSubstr("no batch dim was declared"));
  EXPECT_THAT(refusal([](Trace& t) {
                const Tensor x = t.input("x", {t.batch("batch", 4)});
                return ratio_of(x, sum(x, x.dims()));
              }),
              HasSubstr("still has dims"));
}

TEST(Traced, VerifierFindsListsThatDoNotFit) {
  Traced t = trace_step(two_layers, {});
  EXPECT_TRUE(verify(t).empty());
  t.params.pop_back();
  t.terms[TermId(0)].count = t.terms[TermId(0)].sum;
  t.metrics[0].output = decltype(TracedMetric::output)(99);
  const std::vector<Fault> faults = verify(t);
  ASSERT_EQ(faults.size(), 3u);
  EXPECT_EQ(faults[0].what, "2 parameters are described and the graph has 3");
}

}  // namespace
}  // namespace stretto
