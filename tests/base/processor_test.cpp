#include "stretto/base/processor.h"

#include <gtest/gtest.h>

#include "support/message.h"

namespace stretto {
namespace {

TEST(Processor, LacksAreNamed) {
  EXPECT_NO_THROW(check_processor({.avx2 = true, .fma = true}));
  const std::string hint = "hint: use a processor of 2015 or later, or build with -DSTRETTO_AVX2=OFF";
  EXPECT_EQ(refusal_of([] { check_processor({.avx2 = false, .fma = true}); }),
            "[processor] it lacks AVX2, which the kernels are compiled for; " + hint);
  EXPECT_EQ(refusal_of([] { check_processor({.avx2 = true}); }),
            "[processor] it lacks FMA, which the kernels are compiled for; " + hint);
}

TEST(Processor, IsLimitedToAForm) {
  const Processor all{.avx2 = true, .fma = true, .avx512 = true, .avx512_bf16 = true, .amx_bf16 = true};
  EXPECT_TRUE(limited(all, "amx").amx_bf16);
  EXPECT_TRUE(limited(all, "avx512_bf16").avx512_bf16);
  EXPECT_FALSE(limited(all, "avx512_bf16").amx_bf16);
  EXPECT_TRUE(limited(all, "avx512").avx512);
  EXPECT_FALSE(limited(all, "avx512").avx512_bf16);
  EXPECT_FALSE(limited(all, "avx512").amx_bf16);
  EXPECT_FALSE(limited(all, "avx2").avx512);
  EXPECT_TRUE(limited(all, "avx2").avx2);
  EXPECT_EQ(
      refusal_of([&] { limited(all, "sse9"); }),
      "[STRETTO_KERNELS] there are no kernels for 'sse9'; hint: use amx, avx512_bf16, avx512 or avx2, or unset it");
}

}  // namespace
}  // namespace stretto
