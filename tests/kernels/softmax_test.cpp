#include "stretto/ops/softmax.h"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "stretto/ops/constant.h"
#include "stretto/ops/cross_entropy.h"
#include "stretto/ops/cross_entropy_grad.h"
#include "stretto/ops/input.h"
#include "stretto/ops/softmax_grad.h"
#include "support/evaluate.h"
#include "support/kernel_run.h"
#include "support/message.h"

namespace stretto {
namespace {

using testing::Contains;
using testing::HasSubstr;

TEST(Softmax, SurvivesHugeArguments) {
  Builder b;
  const Dim r{"r", 2}, m{"m", 3};
  const Tensor y = softmax(input(b, "x", f32, {r, m}), m);
  for (const Kernel& k : cpu_kernels(*b.graph.node(y.value).op)) {
    KernelRun run(b.graph, y.value.node, 1, KernelRun::contiguous);
    run.set(0, {1000, 1000, -1e30, -5e4, -5e4 + 0.25, -1e9});
    run.run(k);
    const double e = std::exp(0.25);
    const std::vector<double> expected{0.5, 0.5, 0, 1 / (1 + e), e / (1 + e), 0};
    for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(run.result()[i], expected[i], 1e-7) << k.name;
  }
}

struct Entropy {
  Builder b;
  Dim r{"r", 3}, v{"vocab", 4};
  CrossEntropy ce;
  explicit Entropy(DType t) {
    ce = cross_entropy_terms(input(b, "x", t, {r, v}), input(b, "y", i32, {r}), input(b, "s", f64, {}, true), v);
  }
  std::span<const Kernel> kernels() const { return cpu_kernels(*b.graph.node(ce.sum.value).op); }
};

TEST(CrossEntropy, SumAndGradientOfHugeLogits) {
  Entropy e(f32);
  for (const Kernel& k : e.kernels()) {
    KernelRun run(e.b.graph, e.ce.sum.value.node, 1, KernelRun::contiguous);
    run.set(0, {1000, 1000, -3000, 0, 5, 6, 7, 8, -2000, 3000, 0, 0});
    run.set(1, {1, -100, 0});
    run.set(2, {0.5});
    run.run(k);
    EXPECT_NEAR(run.result(0)[0], std::log(2.0) + 5000, 1e-4) << k.name;
    EXPECT_EQ(run.result(1), (std::vector<double>{0.25, -0.25, 0, 0, 0, 0, 0, 0, -0.5, 0.5, 0, 0})) << k.name;
  }
}

TEST(CrossEntropy, RefusesLabelsOutsideOfTheVocabulary) {
  Entropy e(f64);
  for (const Kernel& k : e.kernels()) {
    KernelRun run(e.b.graph, e.ce.sum.value.node, 1, KernelRun::contiguous);
    run.fill(0, -1, 1);
    run.set(2, {1});
    run.set(1, {0, 4, 0});
    EXPECT_THAT(refusal_of([&] { run.run(k); }),
                HasSubstr("[cross_entropy] label 4 is outside of dim 'vocab', which has 4 classes; hint: positions"));
    run.set(1, {0, -1, 0});
    EXPECT_THAT(refusal_of([&] { run.run(k); }), HasSubstr("label -1"));
  }
}

TEST(CrossEntropy, GradientMayLieWhereTheLogitsWere) {
  Entropy e(f32);
  for (const Kernel& k : e.kernels()) {
    float logits[12] = {1, 2, 3, 4, -1, 0, 1, 9, 5, 5, 5, 5}, apart[12];
    const std::int32_t labels[3] = {3, -100, 2};
    const double scale = 0.25;
    double sum[2];
    const KernelRun shape(e.b.graph, e.ce.sum.value.node, 1, KernelRun::contiguous);
    const auto bytes = [](const auto* p) {
      return reinterpret_cast<std::byte*>(const_cast<void*>(static_cast<const void*>(p)));
    };
    const std::vector<std::byte*> in{bytes(logits), bytes(labels), bytes(&scale)};
    test::run_kernel(k, shape.call, in, {bytes(&sum[0]), bytes(apart)});
    test::run_kernel(k, shape.call, in, {bytes(&sum[1]), bytes(logits)});
    EXPECT_EQ(sum[0], sum[1]);
    EXPECT_EQ(std::vector<float>(logits, logits + 12), std::vector<float>(apart, apart + 12)) << k.name;
  }
}

TEST(Softmax, KernelsAgree) {
  std::mt19937 random(5);
  std::vector<std::string> ran;
  for (int round = 0; round < 40; ++round) {
    Builder b;
    const DType t = round % 2 ? f32 : f64;
    Dim m{"m", i64(random() % 70) + 1}, p{"p", i64(random() % 5) + 1}, q{"q", i64(random() % 4) + 1};
    if (round == 7) m.size = 1500;
    const i64 classes = m.size;
    if (round % 4 == 1) m = m.padded(8);
    if (round % 4 == 2) p = p.padded(3);
    const Dims all = round % 5 ? Dims{p, q, m} : Dims{m, p, q};
    const auto real = [&](Dims dims) { return input(b, fmt::format("x{}", b.graph.nodes.size()), t, dims); };
    const DimId over = b.intern(m);
    const Tensor labels = input(b, "labels", i32, {q, p}), scale = input(b, "scale", f64, {}, true);
    const Tensor nodes[] = {softmax(real(all), m), softmax_grad(real(all), real(all), over),
                            cross_entropy_terms(real(all), labels, scale, m, 2).sum,
                            cross_entropy_grad(real(all), labels, scale, over, -100)};
    for (std::size_t n = 0; n < 4; ++n)
      for (const int skip : {-1, 0, 1}) {
        if (skip >= 0 && n != 2) continue;
        const auto names = check_kernels(
            b.graph, nodes[n].value.node, u64(round),
            [&](KernelRun& r) {
              r.fill(0, n == 1 ? 0 : -4, n == 1 ? 0.1 : 4);
              if (n == 1) r.fill(1, -1, 1);
              if (n >= 2) r.fill_ids(1, classes), r.set(2, {0.3});
            },
            t == f32 ? 1e-5 : 1e-13, skip < 0 ? std::vector<int>{} : std::vector<int>{skip});
        ran.insert(ran.end(), names.begin(), names.end());
        if (HasFailure()) FAIL() << "round " << round << " node " << n;
      }
  }
  EXPECT_THAT(ran, Contains("rows"));
}

TEST(CrossEntropy, MistakesAreNamed) {
  Builder b;
  const Dim r{"r", 3}, s{"s", 2}, v{"v", 4};
  const Tensor x = input(b, "x", f32, {r, s, v}), y = input(b, "y", i32, {r}), one = constant(b, 1, f64);
  EXPECT_THAT(refusal_of([&] { cross_entropy_terms(x, y, one, v); }),
              HasSubstr("[cross_entropy] logits x{r=3 s=2 v=4} and labels y{r=3} differ in more than dim 'v'"));
  EXPECT_THAT(refusal_of([&] { cross_entropy_terms(x, x, one, v); }), HasSubstr("labels x{r=3 s=2 v=4} are f32"));
}

}  // namespace
}  // namespace stretto
