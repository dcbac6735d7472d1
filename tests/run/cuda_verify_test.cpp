// `verify` of a run on a CUDA device compares it with the CPU.
#include <gmock/gmock.h>

#include "stretto/kernels/cuda/api.h"
#include "stretto/run/verify.h"
#include "support/cuda/make_believe.h"
#include "support/files.h"

namespace stretto {
namespace {

TEST(CudaVerify, ARunIsComparedWithTheCpu) {
  if (!test::make_believe_cuda()) GTEST_SKIP() << "there is no NVRTC on this machine";
  use_cuda_api(test::make_believe_cuda());
  const test::Folder folder;
  folder.write("text.txt", test::sentences(200));
  const RunConfig config =
      read_run("", {"--model.layers=1", "--model.width=32", "--model.heads=2", "--model.context=16",
                    "--model.dropout=0.1", "--train.batch=4", "--train.microbatches=2", "--parallel.device=cuda",
                    "--data.path=" + (folder / "text.txt").string()});
  const Verification v = verify(config);
  EXPECT_EQ(v.tolerance, 1e-5);
  EXPECT_FALSE(v.first) << v.first->str();
  EXPECT_GT(v.steps[0].gradient.difference, 0);
  EXPECT_LE(v.steps[0].gradient.difference, 2e-6);
  use_cuda_api(nullptr);
}

TEST(CudaVerify, ExactTrainingIsRefused) {
  const test::Folder folder;
  folder.write("text.txt", test::sentences(200));
  const std::vector<std::string> flags{"--parallel.device=cuda", "--train.exact=true", "--train.batch=4",
                                       "--data.path=" + (folder / "text.txt").string()};
  try {
    verify(read_run("", flags));
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("[train.exact] the bits of a product on cuda devices depend"));
  }
}

}  // namespace
}  // namespace stretto
