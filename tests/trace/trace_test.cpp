#include "stretto/trace/trace.h"

#include <gtest/gtest.h>

#include "stretto/ops/contract.h"
#include "support/message.h"

namespace stretto {
namespace {

TEST(Trace, MicrobatchesCutTheBatch) {
  Trace t({.microbatches = 4});
  EXPECT_EQ(t.batch("batch", 64).size, 16);
  EXPECT_EQ(t.rows_per_step, 64);
  EXPECT_EQ(t.batch_name, "batch");
}

TEST(Trace, SizesMayBeBoundToOthers) {
  Trace t({.sizes = {{"seq", 7}}});
  EXPECT_EQ(t.size("seq", 128).size, 7);
  EXPECT_EQ(t.size("other", 128).size, 128);
}

TEST(Trace, ScopesNameParameters) {
  Trace t;
  const Dim in{"in", 3};
  {
    const Scope layer(t, "h", 2);
    const Scope inner(t, "attention");
    t.param("w", {in});
  }
  t.param("w", {in});
  ASSERT_EQ(t.params.size(), 2u);
  EXPECT_EQ(t.params[0].name, "h.2.attention.w");
  EXPECT_EQ(t.params[1].name, "w");
  EXPECT_EQ(t.tied("h.2.attention.w").value, t.params[0].tensor.value);
  EXPECT_THROW(t.param("w", {in}), Error);
  EXPECT_THROW(t.tied("nowhere"), Error);
}

TEST(Trace, BiasesAndGainsDoNotDecay) {
  Trace t;
  t.bias("b", {{"d", 2}});
  t.gain("g", {{"d", 2}});
  for (const ParamInfo& p : t.params) EXPECT_FALSE(p.options.decay) << p.name;
  EXPECT_EQ(t.params[0].options.init.kind, Init::Kind::zeros);
  EXPECT_EQ(t.params[1].options.init.kind, Init::Kind::ones);
}

TEST(Loss, TermsAddUpWithTheirWeights) {
  Trace t;
  const Dim batch = t.batch("batch", 8), in{"in", 3}, label{"label", 5};
  const Tensor logits = contract(t.input("x", {batch, in}), t.param("w", {in, label}), in);
  const Loss l = cross_entropy(logits, t.ids("y", {batch}), label) + 0.5 * named("z", mean_of(logits));
  ASSERT_EQ(l.terms.size(), 2u);
  EXPECT_EQ(l.terms[0].weight, 1);
  EXPECT_EQ(l.terms[1].weight, 0.5);
  EXPECT_EQ(l.terms[1].name, "z");
  for (const LossTerm& term : l.terms) {
    EXPECT_TRUE(term.sum.dims().empty());
    EXPECT_TRUE(term.count.dims().empty());
    EXPECT_EQ(term.count.dtype(), f64);
  }
}

}  // namespace
}  // namespace stretto
