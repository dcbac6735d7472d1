// Kernels that run for long pause at borders that depend on shapes only.
#include "stretto/kernels/cpu/pauses.h"

#include <gmock/gmock.h>

#include "stretto/ops/attention.h"
#include "stretto/ops/contract.h"
#include "stretto/ops/gelu.h"
#include "stretto/ops/input.h"
#include "stretto/ops/layer_norm.h"
#include "support/kernel_run.h"

namespace stretto {
namespace {

// In every orientation of operands and result.
TEST(Pauses, OfProducts) {
  const Dim m{"m", 527}, n{"n", 571}, k{"k", 686};
  for (const bool turned_a : {false, true})
    for (const bool turned_b : {false, true})
      for (const bool turned_c : {false, true}) {
        if (turned_c && turned_a != turned_b) continue;
        Builder b;
        const Tensor x = input(b, "x", f32, turned_a ? Dims{k, m} : Dims{m, k});
        const Tensor y = input(b, "y", f32, turned_b ? Dims{n, k} : Dims{k, n});
        const Tensor z = contract_into_order(x, y, b.intern(Dims{k}), {}, b.intern(turned_c ? Dims{n, m} : Dims{m, n}));
        KernelRun run(b.graph, z.value.node, 5, KernelRun::contiguous);
        run.fill(0, -1, 1), run.fill(1, -1, 1);
        ASSERT_EQ(run.chosen().name, "gemm");
        run.run(run.chosen());
        EXPECT_GE(run.pauses, 8);  // about five milliseconds of multiplications
        const std::vector<double> vx = run.operand(0), vy = run.operand(1), vz = run.result();
        for (i64 i = 0; i < m.size; i += 57)
          for (i64 j = 0; j < n.size; j += 41) {
            double sum = 0;
            for (i64 l = 0; l < k.size; ++l)
              sum += vx[std::size_t(turned_a ? l * m.size + i : i * k.size + l)] *
                     vy[std::size_t(turned_b ? j * k.size + l : l * n.size + j)];
            ASSERT_NEAR(vz[std::size_t(turned_c ? j * m.size + i : i * n.size + j)], sum, 1e-3) << i << ", " << j;
          }
      }
}

TEST(Pauses, OfLongPassesOverElementsAndOfAttention) {
  const Dim b{"b", 4}, s{"s", 400}, t{"t", 400}, m{"m", 512}, h{"h", 4}, d{"d", 16};
  const auto pauses = [](const Builder& builder, const Tensor& t) {
    KernelRun run(builder.graph, t.value.node, 1, KernelRun::contiguous);
    for (std::size_t i = 0; i < run.call.in.size(); ++i) run.fill(int(i), -1, 1);
    run.run(run.chosen());
    return run.pauses;
  };
  Builder one;
  EXPECT_EQ(pauses(one, gelu(input(one, "x", f32, {b, s, m}))), 1);
  EXPECT_EQ(pauses(one, gelu(input(one, "y", f32, {s, m}))), 0);
  EXPECT_EQ(
      pauses(one, layer_norm(input(one, "z", f32, {b, s, m}), input(one, "g", f32, {m}), input(one, "o", f32, {m}), m)),
      1);
  Builder two;
  EXPECT_GE(pauses(two, attention(input(two, "q", f32, {b, h, s, d}), input(two, "k", f32, {b, h, t, d}),
                                  input(two, "v", f32, {b, h, t, d}), {.query = s, .key = t, .head = d})),
            10);
}

}  // namespace
}  // namespace stretto
