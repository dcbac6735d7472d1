#include <gtest/gtest.h>

#include "support/small_models.h"

namespace stretto {
namespace {

TEST(VerifyProgram, MessagesLieInsideOfTheirArenas) {
  const Compiled c = compile(make_model(tiny("gpt2"), 4), sgd({}), {.microbatches = 2}, {.mesh = {{"pipe", 2}}});
  ASSERT_TRUE(verify(*c.program).empty());
  for (TransferId i : c.program->transfers.ids()) {
    if (std::holds_alternative<SentWord>(c.program->transfers[i].what)) continue;  // has no memory
    Program p = *c.program;
    const Route& route = p.routes[p.transfers[i].route];
    Slot& s = p.transfers[i].extents.back().to;
    s.offset = p.actors[route.target].bytes[s.arena];
    EXPECT_FALSE(verify(p).empty()) << route.name;
  }
}

}  // namespace
}  // namespace stretto
