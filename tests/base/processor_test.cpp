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

}  // namespace
}  // namespace stretto
