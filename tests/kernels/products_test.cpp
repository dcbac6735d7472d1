#include "stretto/kernels/cpu/products.h"

#include <gmock/gmock.h>

#include "stretto/kernels/cpu/multiply.h"
#include "support/child.h"
#include "support/message.h"

namespace stretto {
namespace {

using testing::AllOf;
using testing::HasSubstr;

u64 addresses() {
  u64 pages = 0;
  std::FILE* f = std::fopen("/proc/self/statm", "r");
  const int read = std::fscanf(f, "%lu", &pages);
  std::fclose(f);
  return read == 1 ? pages * 4096 : 0;
}

TEST(Products, AreRefusedWhereTheSystemHasNoAddressesForThem) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer needs more addresses";
#endif
  reserve_products(1);
  const test::Ended e = test::in_child([] {
    std::vector<float> a(64 * 64, 1), c(64 * 64);
    test::limit(RLIMIT_AS, addresses() + 4 * product_buffer);
    reserve_products(2);
    std::fprintf(stderr, "%s\n", refusal_of([] { reserve_products(20); }).c_str());
    // What is reserved stays there, whatever else is taken.
    while (::malloc(1 << 20)) {
    }
    reserve_products(2);
    gemm(false, false, 64, 64, 64, a.data(), 64, a.data(), 64, false, c.data(), 64);
    std::fprintf(stderr, "%g\n", double(c[0]));
  });
  EXPECT_EQ(e.code, 0) << e.error;
  EXPECT_THAT(e.error, AllOf(HasSubstr("[memory] the system refuses the 40.0 MiB that products of 20 threads need: "
                                       "2.00 MiB each; hint: raise the limit (ulimit -v unlimited)"),
                             HasSubstr("\n64\n")));
}

}  // namespace
}  // namespace stretto
