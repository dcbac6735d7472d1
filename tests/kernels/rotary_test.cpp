#include "stretto/ops/rotary.h"

#include <gmock/gmock.h>

#include <cmath>

#include "stretto/ops/input.h"
#include "support/kernel_run.h"
#include "support/message.h"

namespace stretto {
namespace {

using testing::Contains;
using testing::HasSubstr;

TEST(Rotary, TurnsHalvesByPosition) {
  Builder b;
  const Dim s{"s", 2}, d{"d", 4};
  const Tensor y = rotary(input(b, "x", f64, {s, d}), s, d, {.base = 100});
  KernelRun run(b.graph, y.value.node, 1, KernelRun::contiguous);
  run.set(0, {1, 2, 3, 4, 1, 2, 3, 4});
  for (const i64 first : {0, 5}) {
    run.set_offset(0, b.intern(s), first);
    for (const Kernel& k : cpu_kernels(*b.graph.node(y.value).op)) {
      run.run(k);
      for (i64 p = 0; p < 2; ++p)
        for (i64 i = 0; i < 2; ++i) {
          const double angle = double(first + p) * (i ? 0.1 : 1.0), c = std::cos(angle), n = std::sin(angle);
          const double left = double(1 + i), right = double(3 + i);
          EXPECT_NEAR(run.result()[std::size_t(4 * p + i)], left * c - right * n, 1e-15);
          EXPECT_NEAR(run.result()[std::size_t(4 * p + 2 + i)], right * c + left * n, 1e-15);
        }
    }
  }
}

TEST(Rotary, KernelsAgree) {
  std::vector<std::string> ran;
  for (u64 seed = 0; seed < 20; ++seed) {
    Builder b;
    const Dim p{"p", 3}, s = seed % 2 ? Dim{"s", 7} : Dim{"s", 7}.padded(4), h{"h", 2}, d{"d", seed % 3 ? 16 : 6};
    const Dims dims = seed % 4 ? Dims{p, s, h, d} : Dims{d, p, s};
    RotaryOptions o{.interleaved = seed % 3 == 1, .inverse = seed % 5 == 0};
    if (seed % 7 == 0) o.frequencies = {1, 0.1};  // the rest of a head stays as it is
    const Tensor y = rotary(input(b, "x", seed % 2 ? f32 : f64, dims), s, d, o);
    for (const std::string& name : check_kernels(
             b.graph, y.value.node, seed, [](KernelRun& r) { r.fill(0, -1, 1); }, 1e-7))
      ran.push_back(name);
  }
  EXPECT_THAT(ran, Contains("rows"));
}

TEST(Rotary, MistakesAreNamed) {
  Builder b;
  const Dim s{"s", 2}, d{"d", 5}, e{"e", 4};
  const Tensor x = input(b, "x", f64, {s, d, e});
  EXPECT_THAT(refusal_of([&] { rotary(x, s, d); }), HasSubstr("[rotary] dim 'd' of x{s=2 d=5 e=4} has 5 elements"));
  EXPECT_THAT(refusal_of([&] { rotary(x, s, e, {.base = 0}); }), HasSubstr("base 0"));
  EXPECT_THAT(refusal_of([&] { rotary(x, Dim{"seq", 2}, e); }), HasSubstr("seq"));
}

}  // namespace
}  // namespace stretto
