#include "stretto/ops/slots.h"

#include <gtest/gtest.h>

#include "stretto/ops/input.h"
#include "support/kernel_run.h"

namespace stretto {
namespace {

struct Choice {
  Choice(i64 k, i64 room)
      : slots(expert_slots(input(b, "gates", f32, {s, x}), s, x, Dim{"room", room}, k)),
        run(b.graph, slots.chosen.value.node, 1, KernelRun::strided) {}
  void go(const std::vector<double>& gates) {
    run.set(0, gates);
    run.run(run.chosen());
  }
  Builder b;
  Dim s{"s", 4}, x{"x", 3};
  Slots slots;
  KernelRun run;
};

using List = std::vector<double>;

TEST(Slots, TheLargestGatesAreChosenAndOfEqualOnesTheFirst) {
  Choice c(2, 4);
  c.go({1, 2, 3, 5, 5, 5, 0, 9, 0, 7, 1, 6});
  EXPECT_EQ(c.run.result(0), (List{0, 1, 1, 1, 1, 0, 1, 1, 0, 1, 0, 1}));
}

TEST(Slots, AreTakenInTheOrderOfTokensAndLateTokensAreDropped) {
  Choice c(1, 2);
  c.go({9, 0, 0, 0, 9, 0, 9, 0, 0, 9, 0, 0});
  EXPECT_EQ(c.run.result(0), (List{1, 0, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0}));  // the fourth token chose, in vain
  EXPECT_EQ(c.run.result(1), (List{1, 0, 0, 0, 0, 0,                       // token 0: slot 0 of expert 0
                                   0, 0, 1, 0, 0, 0,                       // token 1: slot 0 of expert 1
                                   0, 1, 0, 0, 0, 0,                       // token 2: slot 1 of expert 0
                                   0, 0, 0, 0, 0, 0}));
}

TEST(Slots, WithRoomForAllEveryChoiceHasASlotOfItsOwn) {
  Choice c(2, 4);
  c.run.fill(0, 0, 1);
  c.run.run(c.run.chosen());
  const List chosen = c.run.result(0), taken = c.run.result(1);
  double all = 0;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    double mine = 0;
    for (std::size_t j = 0; j < 4; ++j) mine += taken[4 * i + j];
    EXPECT_EQ(mine, chosen[i]);
    all += mine;
  }
  EXPECT_EQ(all, 8);
  for (std::size_t slot = 0; slot < 12; ++slot) {  // of all experts
    double users = 0;
    for (std::size_t token = 0; token < 4; ++token) users += taken[12 * token + slot];
    EXPECT_LE(users, 1);
  }
}

}  // namespace
}  // namespace stretto
