#include "stretto/ops/slots.h"

#include <gtest/gtest.h>

#include "stretto/ops/input.h"
#include "stretto/ops/top_k.h"
#include "support/kernel_run.h"

namespace stretto {
namespace {

using List = std::vector<double>;

TEST(TopK, TheLargestComeFirstAndOfEqualOnesTheFirst) {
  Builder b;
  const Dim s{"s", 5}, x{"x", 3}, two{"two", 2};
  const Tensor best = top_k(input(b, "gates", f32, {s, x}), x, two);
  KernelRun run(b.graph, best.value.node, 1, KernelRun::strided);
  run.set(0, {1, 2, 3, 5, 5, 5, 0, 9, 0, 7, 1, 6, 2, 2, 3});
  run.run(run.chosen());
  EXPECT_EQ(run.result(), (List{2, 1, 0, 1, 1, 0, 0, 2, 2, 0}));
}

// Numbers that are none leave every place one of the experts'.
TEST(TopK, NamesPlacesWhateverTheNumbers) {
  Builder b;
  const Dim s{"s", 2}, x{"x", 3}, two{"two", 2};
  const Tensor best = top_k(input(b, "gates", f32, {s, x}), x, two);
  KernelRun run(b.graph, best.value.node, 1, KernelRun::strided);
  run.set(0, {NAN, NAN, NAN, 1, NAN, 2});
  run.run(run.chosen());
  for (double place : run.result()) EXPECT_TRUE(place >= 0 && place < 3) << place;
}

struct Places {
  Places(i64 choices, i64 room)
      : choice{"choice", choices},
        places(expert_slots(input(b, "which", i32, {s, choice}), s, choice, x, Dim{"room", room})),
        run(b.graph, places.value.node, 1, KernelRun::strided) {}
  List of(const List& which) {
    run.set(0, which);
    run.run(run.chosen());
    return run.result();
  }
  Builder b;
  Dim s{"s", 4}, x{"x", 3}, choice;
  Tensor places;
  KernelRun run;
};

TEST(Slots, AreTakenInTheOrderOfTokensAndLateTokensHaveNone) {
  EXPECT_EQ(Places(1, 2).of({0, 1, 0, 0}), (List{0, 2, 1, -1}));
  EXPECT_EQ(Places(2, 2).of({0, 1, 0, 2, 2, 0, 1, 2}), (List{0, 2, 1, 4, 5, -1, 3, -1}));
}

TEST(Slots, WhoNamesNoExpertHasNoSlot) { EXPECT_EQ(Places(1, 4).of({-1, 2, 3, 2}), (List{-1, 8, -1, 9})); }

}  // namespace
}  // namespace stretto
