#include "stretto/plan/inner/shapes.h"

#include <gtest/gtest.h>

namespace stretto {
namespace {

RunKeys keys(int microbatches, Recompute recompute = Recompute::none) {
  return {.pipe = 4, .schedule = "interleaved-1f1b", .chunks = 2, .microbatches = microbatches, .recompute = recompute};
}

TEST(Shapes, ShareWhatIsBuiltOfThem) {
  Shapes shapes;
  const RunKeys few = keys(8), many = keys(64), more = keys(128), again = keys(128, Recompute::full);
  shapes.of(few);
  EXPECT_EQ(shapes.schedules(), 1u);
  shapes.make({&many, &more, &again}, [](std::size_t n, const std::function<void(std::size_t)>& f) {
    EXPECT_EQ(n, 2u) << "16 and 20 microbatches";
    for (std::size_t i = 0; i < n; ++i) f(i);
  });
  for (const RunKeys* k : {&many, &more, &again}) shapes.of(*k);
  EXPECT_EQ(shapes.schedules(), 3u);
  EXPECT_EQ(shapes.size(), 4u);
}

// Every microbatch is three phases of one second on each actor; filling and draining is the same for any number.
TEST(Shapes, KnowWhatManyMicrobatchesTake) {
  Shapes shapes;
  const double fill = shapes.of(keys(16)).unit() - 3 * 16;
  EXPECT_GT(fill, 0);
  EXPECT_NEAR(shapes.of(keys(1024)).unit(), 3 * 1024 + fill, 1e-9);
  EXPECT_EQ(shapes.of(keys(1024, Recompute::full)).unit(), shapes.of(keys(1024)).unit());
}

TEST(Shapes, HaveActionsWhenTheyArePlayed) {
  Shapes shapes;
  Shape& s = shapes.of(keys(8));
  ASSERT_EQ(s.outline().rows.size(), 4u);
  EXPECT_TRUE(s.outline().rows[0].empty());
  EXPECT_EQ(s.outline().actor_of, s.schedule().actor_of);
  EXPECT_EQ(s.schedule().rows[0].size(), 2u * 2u * 8u);
  EXPECT_GT(s.nodes(), 0);
}

}  // namespace
}  // namespace stretto
