#include "stretto/kernels/cpu/tile_forms.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace stretto {
namespace {

// Every form that runs here, to the last bit.
template <class T>
void expect_equal_forms() {
  constexpr i64 width = i64(64 / sizeof(T)), pitch = 50;
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  std::vector<T> a(50 * 6 * pitch), panel(50 * width), start(6 * (width + 3));
  for (auto* all : {&a, &panel, &start})
    for (T& x : *all) x = T(normal(random));
  int compared = 0;
  for (const i64 k : {0, 1, 7, 50})
    for (const bool add : {false, true})
      for (const bool turned : {false, true}) {
        std::vector<T> expected;
        for (const TileForm<T>& f : tile_forms<T>()) {
          if (!f.runs(this_processor())) continue;
          std::vector<T> c = start;
          (turned ? f.turned : f.plain)(k, a.data(), pitch, panel.data(), c.data(), width + 3, add);
          if (expected.empty()) expected = c;
          EXPECT_EQ(c, expected) << f.name << " " << k;
          EXPECT_EQ(c == start, k == 0 && add) << f.name;
          ++compared;
        }
      }
  EXPECT_GE(compared, 16);
  EXPECT_TRUE(tile_form<T>().runs(this_processor()));
}

TEST(TileForms, HaveEqualBits) {
  expect_equal_forms<float>();
  expect_equal_forms<double>();
}

}  // namespace
}  // namespace stretto
