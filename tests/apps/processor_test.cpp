// A processor that lacks what kernels are compiled for: a message, no illegal instruction; emulated, where qemu is
// there. One that has more takes other forms of kernels, with the same bits.
#include <gmock/gmock.h>

#include "stretto/base/processor.h"
#include "support/command.h"
#include "support/files.h"

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

TEST(FormsOfKernels, TrainTheSameBits) {
  if (!this_processor().avx512) GTEST_SKIP() << "only one form of f32's kernels runs here";
  const Folder folder;
  std::string text;
  for (int i = 0; i < 20000; ++i) text += char('a' + i * i / 7 % 23);
  folder.write("text.txt", text);
  for (const std::string family : {"gpt2", "mixtral --model.experts=4 --model.top_k=2"}) {
    const auto parameters = [&](const std::string& form) {
      const Result r = shell("STRETTO_KERNELS=" + form + " timeout 120 '" + binaries() +
                                 "/stretto' train --data.path=text.txt --train.steps=2 --train.batch=4 "
                                 "--train.microbatches=2 --model.layers=1 --model.width=96 --model.heads=2 "
                                 "--model.context=48 --checkpoint.keep=0 --log.dir=" +
                                 form + family.substr(0, 3) + " --model.family=" + family,
                             folder.str());
      EXPECT_EQ(r.code, 0) << r.error;
      return r.out.substr(std::min(r.out.find("parameters "), r.out.size()));
    };
    const std::string with_avx2 = parameters("avx2");
    EXPECT_THAT(with_avx2, testing::MatchesRegex("parameters [0-9a-f]{16}\n"));
    EXPECT_EQ(parameters("avx512"), with_avx2) << family;
  }
}

}  // namespace
}  // namespace stretto::test
