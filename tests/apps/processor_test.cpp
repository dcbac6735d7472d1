// A processor that lacks what kernels are compiled for: a message, no illegal instruction. Emulated, where qemu is
// there.
#include <gmock/gmock.h>

#include "support/command.h"

namespace stretto::test {
namespace {

TEST(OldProcessor, IsRefusedWithAMessage) {
  if (shell("command -v qemu-x86_64", "/").code != 0) GTEST_SKIP() << "no qemu-x86_64";
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer does not run in it";
#endif
  for (const char* command : {"--version", "train --help-keys", "show --schedule 1f1b"}) {
    const Result r = shell("timeout 60 qemu-x86_64 -cpu Nehalem '" + binaries() + "/stretto' " + command, "/");
    EXPECT_EQ(r.code, 3) << command << r.out;
    EXPECT_EQ(
        r.error,
        "[processor] it lacks AVX2, which the kernels are compiled for; hint: use a processor of 2015 or later, or "
        "build with -DSTRETTO_AVX2=OFF\n");
  }
}

}  // namespace
}  // namespace stretto::test
