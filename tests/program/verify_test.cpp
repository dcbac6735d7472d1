#include <gtest/gtest.h>

#include "support/small_models.h"

namespace stretto {
namespace {

TEST(VerifyProgram, MessagesLieInsideOfTheirArenas) {
  const Compiled c = compile(make_model(tiny("gpt2"), 4), sgd({}), {.microbatches = 2}, {.mesh = {{"pipe", 2}}});
  ASSERT_TRUE(verify(*c.program).empty());
  for (std::size_t i = 0; i < c.program->transfers.size(); ++i)
    for (bool far : {false, true}) {
      Program p = *c.program;
      Slot& s = p.transfers[i].pieces.back().to;
      s.offset =
          far ? p.actors[std::size_t(p.routes[p.transfers[i].route].target)].bytes[std::size_t(s.arena)] : ~u64(0);
      EXPECT_FALSE(verify(p).empty()) << p.routes[p.transfers[i].route].name;
    }
}

}  // namespace
}  // namespace stretto
