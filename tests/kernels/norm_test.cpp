#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "stretto/ops/input.h"
#include "stretto/ops/layer_norm.h"
#include "stretto/ops/layer_norm_grad.h"
#include "stretto/ops/rms_norm.h"
#include "stretto/ops/rms_norm_grad.h"
#include "stretto/ops/squared_norm.h"
#include "support/kernel_run.h"
#include "support/message.h"

namespace stretto {
namespace {

using testing::Contains;
using testing::HasSubstr;

TEST(LayerNorm, NormalisesARow) {
  Builder b;
  const Dim r{"r", 2}, m{"m", 4};
  const Tensor y = layer_norm(input(b, "x", f64, {r, m}), input(b, "g", f64, {m}), input(b, "b", f64, {m}), m, 0);
  for (const Kernel& k : cpu_kernels(*b.graph.node(y.value).op)) {
    KernelRun run(b.graph, y.value.node, 1, KernelRun::contiguous);
    run.set(0, {1, 1, 3, 3, 0, 0, 0, 8});
    run.set(1, {1, 2, 1, 1});
    run.set(2, {0, 0, 10, 0});
    run.run(k);
    const double s = std::sqrt(12.0);
    const std::vector<double> expected{-1, -2, 11, 1, -2 / s, -4 / s, 10 - 2 / s, 6 / s};
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(run.result(0)[i], expected[i], 1e-14) << k.name;
    EXPECT_EQ(run.result(1), (std::vector<double>{2, 2}));
    EXPECT_NEAR(run.result(2)[1], 1 / s, 1e-15);
  }
}

TEST(RmsNorm, DividesByTheRootMeanSquare) {
  Builder b;
  const Dim m{"m", 4};
  const Tensor y = rms_norm(input(b, "x", f64, {m}), input(b, "g", f64, {m}), m, 0);
  for (const Kernel& k : cpu_kernels(*b.graph.node(y.value).op)) {
    KernelRun run(b.graph, y.value.node, 1, KernelRun::contiguous);
    run.set(0, {3, -3, 1, 1});
    run.set(1, {1, 1, 1, 10});
    run.run(k);
    const double r = 1 / std::sqrt(5.0);
    const std::vector<double> expected{3 * r, -3 * r, r, 10 * r};
    for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(run.result()[i], expected[i], 1e-15) << k.name;
  }
}

class Norms : public testing::TestWithParam<DType> {};

TEST_P(Norms, KernelsAgree) {
  const DType t = GetParam();
  const double tolerance = t == f32 ? 2e-5 : 1e-12;
  std::mt19937 random(3);
  std::vector<std::string> ran;
  for (int round = 0; round < 40; ++round) {
    Builder b;
    Dim m{"m", i64(random() % 70) + 1}, p{"p", i64(random() % 5) + 1}, q{"q", i64(random() % 4) + 1};
    if (round % 4 == 1) m = m.padded(8);
    if (round % 4 == 2) p = p.padded(3);
    const Dims rows = round % 3 ? Dims{p, q} : Dims{p}, all = round % 5 ? Dims{p, q, m} : Dims{m, p, q},
               x_dims = round % 3 ? all : Dims{p, m};
    const auto real = [&](Dims dims) { return input(b, fmt::format("x{}", b.graph.nodes.size()), t, dims); };
    const DimId over = b.intern(m);
    const Tensor nodes[] = {layer_norm(real(x_dims), real(m), real(m), m), rms_norm(real(x_dims), real(m), m),
                            layer_norm_grad(real(x_dims), real(m), real(rows), real(rows), real(x_dims), over),
                            rms_norm_grad(real(x_dims), real(m), real(rows), real(x_dims), over),
                            squared_norm(real(x_dims))};
    for (const Tensor& node : nodes)
      for (const std::vector<int>& skip : {std::vector<int>{}, {0}, {1}}) {
        const std::size_t results = b.graph.node(node.value).results.size();
        if (results == 1 && !skip.empty()) continue;
        const auto names = check_kernels(
            b.graph, node.value.node, u64(round),
            [](KernelRun& r) {
              for (int i = 0; i < int(r.call.in.size()); ++i) r.fill(i, -1, 1);
            },
            tolerance, skip);
        ran.insert(ran.end(), names.begin(), names.end());
        if (HasFailure()) FAIL() << "round " << round << " " << node.str();
      }
  }
  EXPECT_THAT(ran, Contains("rows"));
}
INSTANTIATE_TEST_SUITE_P(Types, Norms, testing::Values(f32, f64),
                         [](const auto& i) { return std::string(name_of(i.param)); });

TEST(SquaredNorm, DoesNotOverflowOrLoseSmallOnes) {
  Builder b;
  const Tensor y = squared_norm(input(b, "x", f32, {{"n", 5}}));
  for (const Kernel& k : cpu_kernels(*b.graph.node(y.value).op)) {
    KernelRun run(b.graph, y.value.node, 1, KernelRun::contiguous);
    run.set(0, {1e25, 3, 0, 4, 0});
    run.run(k);
    EXPECT_NEAR(run.result()[0] / 1e50, 1, 1e-6);
    run.set(0, {1e-25, 0, 0, 0, 0});
    run.run(k);
    EXPECT_NEAR(run.result()[0] * 1e50, 1, 1e-6);
  }
}

TEST(LayerNorm, MistakesAreNamed) {
  Builder b;
  const Dim r{"r", 2}, m{"m", 4};
  const Tensor x = input(b, "x", f32, {r, m}), v = input(b, "g", f32, {m}), wrong = input(b, "w", f32, {r});
  EXPECT_THAT(refusal_of([&] { layer_norm(x, v, wrong, m); }),
              HasSubstr("[layer_norm] operand 3 is w{r=2}, not a vector along 'm'"));
  EXPECT_THAT(refusal_of([&] { layer_norm(x, v, v, Dim{"model", 4}); }), HasSubstr("model"));
  EXPECT_THAT(refusal_of([&] { rms_norm(x, input(b, "d", f64, {m}), m); }), HasSubstr("is f32 and d{m=4} is f64"));
}

}  // namespace
}  // namespace stretto
