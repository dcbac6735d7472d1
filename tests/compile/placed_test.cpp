#include "stretto/compile/placed.h"

#include <gmock/gmock.h>

#include "compile/two_layers.h"
#include "stretto/compile/inner/differentiated.h"

namespace stretto {
namespace {
using testing::ElementsAre;
using testing::HasSubstr;

Traced traced() { return trace_step(test::two_layers, {.microbatches = 2}); }

TEST(Placed, OneRankKeepsTheGraph) {
  const StepGraph s = differentiated(traced());
  const Placed p = place(s, complete({.mesh = {{"pipe", 2}}}, traced()));
  EXPECT_EQ(p.sharded, nullptr);
  EXPECT_EQ(p.step.graph.hash(), s.graph.hash());
}

TEST(Placed, RanksHaveTheirPartsOfTheRows) {
  const Traced t = traced();
  const Placed p = place(differentiated(t), complete({.names = {.data = 2}}, t));
  ASSERT_NE(p.sharded, nullptr);
  const Type& x = p.step.graph.type(p.step.inputs[InputId(0)]);
  EXPECT_EQ(p.step.graph.size(x.dims[0]), 2) << "4 rows of a microbatch on two ranks";
  EXPECT_TRUE(verify(p.step).empty());
}

TEST(Placed, NamesAndWhatIsSaidBesideThemAreOneLayout) {
  const Traced t = traced();
  const Parallel p = complete({.mesh = {{"pipe", 2}, {"x", 3}}, .names = {.data = 2}, .layout = {{"mid", "x"}}}, t);
  EXPECT_EQ(p.mesh.str(), "pipe=2 x=3 data=2");
  EXPECT_EQ(p.layout.str(), "batch->data mid->x");
  EXPECT_EQ(p.names, ParallelNames{});
  EXPECT_THAT(axes_of_rows(p, t.batch), ElementsAre("data"));
  EXPECT_EQ(ranks_along(p.mesh, {"data", "x"}), 6);
  EXPECT_THROW(complete({.mesh = {{"data", 2}}, .names = {.data = 2}}, t), Error);
  EXPECT_EQ(complete({.mesh = {{"x", 2}}, .names = {.data = 2}, .layout = {{"batch", "x"}}}, t).layout.str(),
            "batch->x")
      << "what is said of a dim stands in place of what the names say";
}

TEST(Placed, RowsMustBeShareable) {
  const Traced t = traced();
  const Parallel p = complete({.names = {.data = 3}}, t);
  try {
    check_rows(t, p, 2);
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(),
                HasSubstr("8 rows per step in 2 microbatches are 4 rows at a time, which 3 ranks along data"));
    EXPECT_THAT(e.what(), HasSubstr("the nearest batch sizes are 6 and 12"));
  }
}

}  // namespace
}  // namespace stretto
