#include "stretto/cost/kernel.h"

#include <gtest/gtest.h>

namespace stretto {
namespace {

Machine round_device() {
  return {.flops = 10,
          .memory_bandwidth = 100,
          .flops_bf16 = 1000,
          .rates = Rates{
              .product = 0.5, .small = 10, .attention = 0.25, .attention_backward = 0.5, .elements = 0.5, .kernel = 1}};
}
KernelWork product(double m, double n, double k) {
  return {.cost = {.flops = 2 * m * n * k, .shape = ProductShape{.m = m, .n = n, .k = k}}, .of_bf16 = true};
}

TEST(KernelSeconds, WithoutRatesIsARoofline) {
  const Machine m{.flops = 10, .memory_bandwidth = 100};
  EXPECT_EQ(kernel_seconds({.cost = {.flops = 50, .read = 100, .written = 100}}, m), 5);
  EXPECT_EQ(kernel_seconds({.cost = {.flops = 5, .read = 100, .written = 100}}, m), 2);
  EXPECT_EQ(kernel_seconds({.cost = {.flops = 5, .read = 100, .written = 100}, .accumulates = true}, m), 3);
}

TEST(KernelSeconds, ProductsSlowDownWithSmallSides) {
  // 2 * 10 * 90 * 40 operations at 1000 * 0.5 * 1/2 * 9/10 * 4/5 per second, and a launch.
  EXPECT_DOUBLE_EQ(kernel_seconds(product(10, 90, 40), round_device()), 72000 / (500 * 0.5 * 0.9 * 0.8) + 1);
}

TEST(KernelSeconds, ProductsOfExpertsAreGrouped) {
  Machine m = round_device();
  m.rates->small = 0, m.rates->grouped = 0.5;
  KernelWork w = product(10, 20, 30);
  EXPECT_DOUBLE_EQ(kernel_seconds(w, m), 12000 / 500.0 + 1);
  std::get<ProductShape>(w.cost.shape).batches = 4;
  EXPECT_DOUBLE_EQ(kernel_seconds(w, m), 4 * 12000 / 250.0 + 1);
}

TEST(KernelSeconds, ProductsThatMoveMoreThanTheyComputeTakeTheirBytes) {
  KernelWork w = product(10, 10, 10);
  w.cost.read = 1e6;
  EXPECT_DOUBLE_EQ(kernel_seconds(w, round_device()), 1e6 / (100 * 0.5) + 1);
}

TEST(KernelSeconds, PassesOverElementsTakeTheirBytesWhateverTheyCompute) {
  EXPECT_DOUBLE_EQ(kernel_seconds({.cost = {.flops = 1e9, .read = 60, .written = 40}}, round_device()), 3);
  EXPECT_EQ(kernel_seconds({}, round_device()), 0) << "what does nothing is no kernel";
}

TEST(KernelSeconds, AttentionHasARateOfItsOwn) {
  KernelWork w{.cost = {.flops = 1000, .read = 1, .shape = AttentionShape{}}, .of_bf16 = true};
  EXPECT_DOUBLE_EQ(kernel_seconds(w, round_device()), 1000 / (1000 * 0.25) + 1);
  std::get<AttentionShape>(w.cost.shape).backward = true;
  EXPECT_DOUBLE_EQ(kernel_seconds(w, round_device()), 1000 / (1000 * 0.25 * 0.5) + 2);
}

TEST(KernelSeconds, KeptScoresAreProductsAndPasses) {
  Machine m = round_device();
  m.rates->small = 0;
  m.rates->scores_forward = 5, m.rates->scores_backward = 10;
  KernelWork w{
      .cost = {.read = 1,
               .shape = AttentionShape{.heads = 2, .queries = 4, .keys = 4, .head = 8, .value = 8, .seen = 0.5}},
      .of_bf16 = true};
  const double one = 2 * 2 * 4 * 4 * 8 / 500.0, scores = 2 * 4 * 4 / 50.0;
  EXPECT_DOUBLE_EQ(kernel_seconds(w, m), 3 + 2 * one + 5 * scores) << "hidden ones are computed, too";
  std::get<AttentionShape>(w.cost.shape).backward = true;
  EXPECT_DOUBLE_EQ(kernel_seconds(w, m), 6 + 4 * one + 10 * scores);
}

TEST(KernelSeconds, NarrowProductsAreFasterAndCast) {
  Machine m = round_device();
  m.rates->small = 0, m.rates->narrow = 2, m.rates->cast = 3;
  KernelWork w = product(10, 20, 30);
  const double wide = 12000 / 500.0;
  EXPECT_DOUBLE_EQ(kernel_seconds(w, m), wide + 1) << "the head stays as it is";
  w.narrow = true;
  EXPECT_DOUBLE_EQ(kernel_seconds(w, m), wide / 2 + 3 * 300 / 50.0 + 2) << "weights are cast once a step";
}

TEST(KernelSeconds, ShortSidesCostNarrowProductsMore) {
  Machine m = round_device();
  m.rates->narrow = 2;
  KernelWork w = product(20, 80, 180);
  w.narrow = true;  // with 20 for `small` in place of 10
  EXPECT_DOUBLE_EQ(kernel_seconds(w, m), 2 * 20 * 80 * 180 / (2 * 500 * 0.5 * 0.8 * 0.9) + 2);
}

// What is long is cut among them, what is short is not, and more threads never take longer.
TEST(KernelSeconds, ThreadsShareWhatIsWorthIt) {
  Machine m{.flops = 1e9, .memory_bandwidth = 1e9};
  const KernelWork longer{.cost = {.flops = 1e9}}, shorter{.cost = {.flops = 3e4}};
  const double one = kernel_seconds(longer, m), brief = kernel_seconds(shorter, m);
  m.threads = 4;
  EXPECT_GT(kernel_seconds(longer, m), one / 4);
  EXPECT_NEAR(kernel_seconds(longer, m), one / 4, 1e-4);
  EXPECT_EQ(kernel_seconds(shorter, m), brief);
  double before = one;
  for (m.threads = 2; m.threads <= 64; m.threads *= 2) {
    EXPECT_LT(kernel_seconds(longer, m), before);
    before = kernel_seconds(longer, m);
    EXPECT_EQ(m.peak(false), m.threads * 1e9);
  }
}

}  // namespace
}  // namespace stretto
