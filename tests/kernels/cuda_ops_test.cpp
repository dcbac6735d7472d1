// The kernels of CUDA devices, on the machine for PTX: every op of the table against the CPU's reference.
#include <gtest/gtest.h>

#include <numeric>

#include "stretto/kernels/cuda/kernel.h"
#include "support/cuda/cuda_runs.h"
#include "support/cuda/make_believe.h"
#include "support/example_runs.h"

namespace stretto {
namespace {

class EveryCudaKernel : public testing::TestWithParam<const Op*> {
 protected:
  void SetUp() override {
    if (!test::make_believe_cuda()) GTEST_SKIP() << "there is no NVRTC on this machine";
    if (cpu_kernels(*GetParam()).empty()) GTEST_SKIP() << "a view or a source";
    if (cuda_kernels(*GetParam()).empty()) GTEST_SKIP() << "CUDA devices refuse it by name";
  }
  // The results of the device's kernel and of the CPU's reference, on the same memory.
  void compare(const Examples& e, const Graph& g, NodeId node, unsigned seed, KernelRun::Layout layout,
               double tolerance, bool accumulate = false) {
    KernelRun run(g, node, seed, layout);
    fill(run, e);
    if (GetParam()->regroups == Regroups::there) {  // places that group_rows found are all different
      std::vector<double> places(run.operand(1).size());
      std::iota(places.begin(), places.end(), 0);
      run.set(1, places);
    }
    run.now = {.seed = 7, .step = 3, .first_row = 2, .overwrite = !accumulate, .key = 11};
    run.call.accumulate = accumulate;
    KernelRun expected = run;
    run.run(test::cuda_kernel());
    expected.run(cpu_kernels(*GetParam()).back());
    for (std::size_t r = 0; r < run.call.out.size(); ++r) {
      const std::vector<double> a = run.result(int(r)), b = expected.result(int(r));
      for (std::size_t i = 0; i < a.size(); ++i)
        ASSERT_TRUE(a[i] == b[i] || std::abs(a[i] - b[i]) <= tolerance * (1 + std::abs(b[i])))
            << "result " << r << " element " << i << " is " << a[i] << ", the reference's " << b[i];
    }
  }
};

TEST_P(EveryCudaKernel, AgreesWithTheReference) {
  const unsigned rounds = std::getenv("STRETTO_LONG") ? 8 : 2;
  for (const DType type : {f32, f64, bf16})
    for_each_node(*GetParam(), type, rounds, [&](const Examples& e, const Graph& g, NodeId node, unsigned round) {
      const double tolerance = type == f32 ? 1e-5 : type == f64 ? 1e-12 : 0x1.02p-7;  // two roundings of bf16
      SCOPED_TRACE(name_of(type));
      if (HasFatalFailure()) return;
      compare(e, g, node, round, round % 2 ? KernelRun::strided : KernelRun::contiguous, tolerance);
      if (GetParam()->accumulates && round == 0) compare(e, g, node, round, KernelRun::strided, tolerance, true);
    });
}

INSTANTIATE_TEST_SUITE_P(Ops, EveryCudaKernel, testing::ValuesIn(all_ops().begin(), all_ops().end()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace stretto
