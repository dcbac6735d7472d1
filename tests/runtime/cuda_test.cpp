// Training on make-believe CUDA devices: the runtime, the device and its kernels as they are, against the CPU.
#include <gmock/gmock.h>

#include "stretto/kernels/cuda/api.h"
#include "support/cuda/make_believe.h"
#include "support/small_models.h"

namespace stretto {
namespace {

class CudaTraining : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::make_believe_cuda()) GTEST_SKIP() << "there is no NVRTC on this machine";
    use_cuda_api(test::make_believe_cuda());
  }
  void TearDown() override { use_cuda_api(nullptr), test::make_believe() = {}; }

  struct Run {
    std::vector<double> losses;
    std::map<std::string, Array> gradients;  // of the first step
    u64 hash = 0;
  };
  static Run run(const ModelConfig& model, DeviceKind device, Training training, int steps) {
    Trainer t(compile(make_model(model, 4), adamw({.lr = 1e-3}), training), {.device = device});
    const Batch batch = random_batch(t.compiled(), model.vocab);
    Run r;
    for (int s = 0; s < steps; ++s) {
      r.losses.push_back(t.step(batch).loss);
      if (s > 0) continue;
      for (const CompiledParam& p : t.compiled().params)
        if (!p.accumulators.empty()) r.gradients[p.name] = t.gradient(p.name);
    }
    r.hash = t.parameters_hash();
    return r;
  }
  // The largest difference of an element, as a share of its gradient's largest.
  static double worst(const Array& a, const Array& b) {
    const std::vector<double> x = a.doubles(), y = b.doubles();
    double difference = 0, largest = 1e-30;
    for (std::size_t i = 0; i < x.size(); ++i)
      difference = std::max(difference, std::abs(x[i] - y[i])), largest = std::max(largest, std::abs(y[i]));
    return difference / largest;
  }
  static void agrees(const ModelConfig& model, DType dtype, double limit) {
    const Training training{.microbatches = 2, .dtype = dtype, .clip = 1};
    const Run cuda = run(model, DeviceKind::cuda, training, 3), cpu = run(model, DeviceKind::cpu, training, 3);
    for (const auto& [name, gradient] : cpu.gradients)
      EXPECT_LE(worst(cuda.gradients.at(name), gradient), limit) << name;
    for (std::size_t s = 0; s < cpu.losses.size(); ++s)
      EXPECT_NEAR(cuda.losses[s], cpu.losses[s], limit * cpu.losses[s]) << "step " << s;
  }
};

TEST_F(CudaTraining, Gpt2InF32) { agrees(tiny("gpt2"), f32, 1e-6); }
TEST_F(CudaTraining, Gpt2InF64) { agrees(tiny("gpt2"), f64, 1e-12); }
TEST_F(CudaTraining, Gpt2InBf16) { agrees(tiny("gpt2"), bf16, 0x1p-6); }
TEST_F(CudaTraining, LlamaInF32) { agrees(tiny("llama"), f32, 1e-6); }

}  // namespace
}  // namespace stretto
