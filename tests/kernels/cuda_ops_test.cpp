// The kernels of CUDA devices, on the machine for PTX: every op of the table against the CPU's reference.
#include <gmock/gmock.h>

#include <numeric>

#include "stretto/kernels/cuda/api.h"
#include "stretto/kernels/cuda/kernel.h"
#include "stretto/ops/fused.h"
#include "support/cuda/cuda_runs.h"
#include "support/cuda/make_believe.h"
#include "support/example_runs.h"
#include "support/files.h"

namespace stretto {
namespace {
using testing::IsEmpty;
using testing::Not;

// The results of the device's kernel and of the CPU's reference, on the same memory: what is wrong, or nothing.
std::string difference(const Examples& e, const Graph& g, NodeId node, unsigned seed, KernelRun::Layout layout,
                       double tolerance, bool accumulate = false) {
  KernelRun run(g, node, seed, layout);
  const Op& op = *g.node(node).op;
  fill(run, e);
  if (op.regroups == Regroups::there) {  // places that group_rows found are all different
    std::vector<double> places(run.operand(1).size());
    std::iota(places.begin(), places.end(), 0);
    run.set(1, places);
  }
  run.now = {.seed = 7, .step = 3, .first_row = 2, .overwrite = !accumulate, .key = 11};
  run.call.accumulate = accumulate;
  KernelRun expected = run;
  run.run(test::cuda_kernel());
  expected.run(cpu_kernels(op).back());
  for (std::size_t r = 0; r < run.call.out.size(); ++r) {
    const std::vector<double> a = run.result(int(r)), b = expected.result(int(r));
    for (std::size_t i = 0; i < a.size(); ++i)
      if (!(a[i] == b[i] || std::abs(a[i] - b[i]) <= tolerance * (1 + std::abs(b[i]))))
        return fmt::format("result {} element {} is {}, the reference's {}", r, i, a[i], b[i]);
  }
  return "";
}
double tolerance_of(DType type) { return type == f32 ? 1e-5 : type == f64 ? 1e-12 : 0x1.02p-7; }  // bf16: two roundings

class EveryCudaKernel : public testing::TestWithParam<const Op*> {
 protected:
  void SetUp() override {
    if (!test::make_believe_cuda()) GTEST_SKIP() << "there is no NVRTC on this machine";
    if (cpu_kernels(*GetParam()).empty()) GTEST_SKIP() << "a view or a source";
    if (cuda_kernels(*GetParam()).empty()) GTEST_SKIP() << "CUDA devices refuse it by name";
    use_cuda_api(test::make_believe_cuda());
  }
  void TearDown() override { use_cuda_api(nullptr); }
};

TEST_P(EveryCudaKernel, AgreesWithTheReference) {
  const unsigned rounds = std::getenv("STRETTO_LONG") ? 8 : 2;
  for (const DType type : {f32, f64, bf16})
    for_each_node(*GetParam(), type, rounds, [&](const Examples& e, const Graph& g, NodeId node, unsigned round) {
      SCOPED_TRACE(name_of(type));
      if (HasFatalFailure()) return;
      const KernelRun::Layout layout = round % 2 ? KernelRun::strided : KernelRun::contiguous;
      ASSERT_EQ(difference(e, g, node, round, layout, tolerance_of(type)), "");
      if (!GetParam()->accumulates || round > 0) return;
      ASSERT_EQ(difference(e, g, node, round, KernelRun::strided, tolerance_of(type), true), "") << "added up";
    });
}

INSTANTIATE_TEST_SUITE_P(Ops, EveryCudaKernel, testing::ValuesIn(all_ops().begin(), all_ops().end()),
                         [](const auto& info) { return std::string(info.param->name); });

// Kernels are spoilt in one place each: a bound, a stride, a barrier, a rounding, an order. The machine refuses them,
// or their results are others.
class SpoiltCudaKernel : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::make_believe_cuda()) GTEST_SKIP() << "there is no NVRTC on this machine";
  }
  void TearDown() override { use_cuda_api(nullptr); }

  // What is found first, over the op's examples, with `good` replaced by `bad` wherever it stands.
  static std::string found(const Op& op, DType type, const std::string& good, const std::string& bad,
                           double tolerance) {
    static std::string from, to;
    static CudaCompiler compiler;
    static int spoilt;
    const test::Folder images;  // texts are known by what they were before
    CudaApi api = *test::make_believe_cuda();
    from = good, to = bad, spoilt = 0, compiler = api.compiler, api.cache = images.str();
    api.compiler.create = [](CudaProgram* p, const char* text, const char* name, int n, const char* const* a,
                             const char* const* b) {
      std::string t = text;
      std::size_t at = t.find(from);
      spoilt += at != t.npos;
      for (; at != t.npos; at = t.find(from, at + to.size())) t.replace(at, from.size(), to);
      return compiler.create(p, t.c_str(), name, n, a, b);
    };
    use_cuda_api(&api);
    std::string first;
    try {
      for_each_node(op, type, 1, [&](const Examples& e, const Graph& g, NodeId node, unsigned round) {
        if (first.empty()) first = difference(e, g, node, round, KernelRun::strided, tolerance);
      });
    } catch (const Error& e) {
      first = e.what();
    }
    EXPECT_GT(spoilt, 0) << "no kernel of " << op.name << " has " << good;
    return first;
  }
  static std::string found(std::string_view op, const std::string& good, const std::string& bad) {
    return found(*op_named(op), f32, good, bad, tolerance_of(f32));
  }
};
using testing::HasSubstr;

TEST_F(SpoiltCudaKernel, ABound) {
  EXPECT_EQ(found("gelu", "x < x_n", "x  <  x_n"), "") << "not spoilt";
  EXPECT_THAT(found("gelu", "x < x_n", "x <= x_n"), Not(IsEmpty()));
  EXPECT_THAT(found("layer_norm", "k < k_n", "k < k_n - 1"), HasSubstr("the reference's"));
  EXPECT_THAT(found("attention", "const bool sees = j < to", "const bool sees = j <= to"), Not(IsEmpty()));
}
TEST_F(SpoiltCudaKernel, AStride) {
  EXPECT_THAT(found("softmax", "store(o0 + at_o0(row, k)", "store(o0 + at_i0(row, k)"), Not(IsEmpty()));
  EXPECT_THAT(found("contract", "right[y][x] =", "right[x][y] ="), Not(IsEmpty()));
}
TEST_F(SpoiltCudaKernel, ABarrier) {
  EXPECT_THAT(found("layer_norm", "__syncthreads();", ""), HasSubstr("a race"));
  EXPECT_THAT(found("layer_norm", "__syncthreads();\n  return s;", "return s;"), HasSubstr("a race"));
  EXPECT_THAT(found("layer_norm", "__syncthreads();", "if (threadIdx.x < 64) __syncthreads();"),
              testing::AnyOf(HasSubstr("a barrier that not all threads come to"), HasSubstr("a race")));
}
TEST_F(SpoiltCudaKernel, AShuffle) {
  EXPECT_THAT(found("attention", "if (const unsigned e = lane + 32 * n; e < value_n) out[n] += weight *",
                    "if (const unsigned e = lane + 32 * n; e < value_n) out[n] += __shfl_sync(whole_warp, p, 0) *"),
              Not(IsEmpty()));
}
TEST_F(SpoiltCudaKernel, ARounding) {
  const std::string nearest = "u + 0x7fffu + ((u >> 16) & 1u)";  // sums of two bf16 numbers have the CPU's bits
  EXPECT_EQ(found(*op_named("add"), bf16, nearest, nearest + " + 0u", 0), "") << "not spoilt";
  EXPECT_THAT(found(*op_named("add"), bf16, nearest, "u", 0), HasSubstr("the reference's"));
}
TEST_F(SpoiltCudaKernel, ASum) {
  EXPECT_THAT(found("embedding_grad", "sum += get(i0 + at_i0(p, k))", "sum = get(i0 + at_i0(p, k))"), Not(IsEmpty()));
}
TEST_F(SpoiltCudaKernel, TwoWriters) {
  EXPECT_THAT(found("layer_norm", "threadIdx.x == 0 && o1", "o1"), HasSubstr("a race: it writes what thread"));
}

}  // namespace
}  // namespace stretto
