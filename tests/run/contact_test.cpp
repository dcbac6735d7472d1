// The first time with CUDA devices: every row of the table, and what is said of a device that is wrong.
#include "stretto/run/contact.h"

#include <gmock/gmock.h>

#include "stretto/kernels/cuda/api.h"
#include "support/cuda/make_believe.h"
#include "support/files.h"

namespace stretto {
namespace {
using testing::AllOf;
using testing::HasSubstr;

class FirstContact : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::make_believe_cuda()) GTEST_SKIP() << "there is no NVRTC on this machine";
    use_cuda_api(test::make_believe_cuda());
    folder_.write("text.txt", test::sentences(100));
  }
  void TearDown() override { use_cuda_api(nullptr), test::make_believe() = {}; }
  Contact contact() {
    const RunConfig config =
        read_run("", {"--model.layers=1", "--model.width=16", "--model.heads=2", "--model.context=8", "--train.batch=4",
                      "--train.microbatches=2", "--parallel.device=cuda", "--parallel.pipe=2",
                      "--data.path=" + (folder_ / "text.txt").string()});
    return first_contact(config, {.verify = {.steps = 1}, .scale = 1e-3, .copied = 4096});
  }
  test::Folder folder_;
};

TEST_F(FirstContact, EndsInOneTable) {
  const Contact c = contact();
  EXPECT_FALSE(c.wrong) << *c.wrong;
  EXPECT_THAT(c.str(), AllOf(HasSubstr("2 × make-believe (sm_80), driver 13.0, NVRTC 1"), HasSubstr("calls of"),
                             HasSubstr("2 pairs, 8 collectives"), HasSubstr("the worst gradient differs by"),
                             HasSubstr("parameters "), HasSubstr("one hash under "), HasSubstr("1f1b"),
                             HasSubstr("planned"), HasSubstr("bf16: products ")));
}

// A kernel that rounds wrongly is named, and nothing is tried after it.
TEST_F(FirstContact, StopsAtWhatIsWrong) {
  CudaApi api = *test::make_believe_cuda();
  static CudaCompiler compiler;
  compiler = api.compiler;
  const test::Folder images;
  api.cache = images.str();
  api.compiler.create = [](CudaProgram* p, const char* text, const char* name, int n, const char* const* a,
                           const char* const* b) {
    std::string t = text;
    const std::string good = "join(W a, W b) { return a + b; }";
    if (const std::size_t at = t.find(good); at != t.npos)
      t.replace(at, good.size(), "join(W a, W b) { return a - b; }");
    return compiler.create(p, t.c_str(), name, n, a, b);
  };
  use_cuda_api(&api);
  const Contact c = contact();
  ASSERT_TRUE(c.wrong);
  EXPECT_THAT(*c.wrong,
              AllOf(HasSubstr("kernels: [device] sum: result 0 differs from the CPU's by"), HasSubstr("hint")));
  ASSERT_EQ(c.rows.size(), 2u);
  EXPECT_EQ(c.rows.back().found, "WRONG");
}

}  // namespace
}  // namespace stretto
