#include "stretto/kernels/kernel_bench.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stretto {
namespace {

TEST(KernelBench, MeasuresEveryKindOfWork) {
  const auto device = cpu_device();
  int products = 0, attentions = 0, passes = 0;
  for (const BenchedKernel& k : measure_kernels(*device, 0.05)) {
    EXPECT_TRUE(std::isfinite(k.seconds) && k.seconds > 0) << k.name;
    EXPECT_GT(k.cost.read + k.cost.written, 0) << k.name;
    (std::holds_alternative<ProductShape>(k.cost.shape)     ? products
     : std::holds_alternative<AttentionShape>(k.cost.shape) ? attentions
                                                            : passes)++;
  }
  EXPECT_EQ(products, 12);
  EXPECT_EQ(attentions, 6) << "three lengths, both ways";
  EXPECT_EQ(passes, 10);
}

}  // namespace
}  // namespace stretto
