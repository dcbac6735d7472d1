// Products of bf16 by the processor's own instructions, where it has them.
#include "stretto/kernels/cpu/bf16_tiles.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace stretto {
namespace {

struct Bf16Operand {
  i64 rows, columns;
  bool turned;
  std::vector<BF16> numbers = {};
  i64 line() const { return (turned ? rows : columns) + 3; }
  double at(i64 r, i64 c) const { return numbers[turned ? c * line() + r : r * line() + c]; }
  Bf16Matrix matrix() const { return {numbers.data(), line(), turned}; }
};
Bf16Operand random_operand(i64 rows, i64 columns, bool turned, std::mt19937& random) {
  Bf16Operand m{rows, columns, turned};
  std::uniform_real_distribution<float> some(-1, 1);
  m.numbers.resize((turned ? columns : rows) * m.line());
  for (BF16& x : m.numbers) x = BF16(some(random));
  return m;
}

TEST(Bf16Tiles, MultipliesMatricesOfEverySizeAndOrder) {
  if (bf16_form().empty()) GTEST_SKIP() << "this processor, or system, has no products of bf16";
  std::mt19937 random(1);
  struct Shape {
    i64 m, n, k;
  };
  for (const bool left_turned : {false, true})
    for (const bool right_turned : {false, true})
      for (const auto& [m, n, k] : {Shape{1, 1, 1}, Shape{16, 16, 32}, Shape{33, 17, 31}, Shape{32, 64, 65},
                                    Shape{5, 70, 200}, Shape{100, 3, 33}}) {
        const Bf16Operand a = random_operand(m, k, left_turned, random), b = random_operand(k, n, right_turned, random);
        std::vector<BF16> left(bf16_packed(m, k)), right(bf16_packed(n, k));
        bf16_pack_left(a.matrix(), {m, k}, left.data());
        bf16_pack_right(b.matrix(), {k, n}, right.data());
        i64 seen = 0;
        bf16_multiply(m, n, k, left.data(), right.data(), [&](const Bf16Square& r) {
          for (i64 i = r.row; i < r.row + r.rows; ++i)
            for (i64 j = r.column; j < r.column + r.columns; ++j, ++seen) {
              double sum = 0;
              for (i64 l = 0; l < k; ++l) sum += a.at(i, l) * b.at(l, j);
              ASSERT_NEAR(r.sums[(i - r.row) * bf16_square + j - r.column], sum, 1e-5) << i << " " << j;
            }
        });
        EXPECT_EQ(seen, m * n);
      }
}

}  // namespace
}  // namespace stretto
