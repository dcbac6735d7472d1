// Rows times the matrix of their expert: uneven experts, a rank's part of them, and sums over microbatches. The ops'
// own examples hold values and gradients (tests/ops).
#include "stretto/ops/choose.h"

#include <gmock/gmock.h>

#include <numeric>

#include "stretto/ops/choose_grad.h"
#include "stretto/ops/input.h"
#include "support/kernel_run.h"

namespace stretto {
namespace {

constexpr i64 row_count = 1100, expert_count = 5;  // more than two blocks for one expert

struct Rows {
  Dim s{"s", row_count}, x{"x", expert_count}, m{"m", 7}, f{"f", 9};
  Builder b;
  Tensor which = input(b, "which", i32, {s});
  Tensor in = input(b, "in", f64, {s, m}), w = input(b, "w", f64, {x, m, f}), g = input(b, "g", f64, {s, f});
};

std::vector<double> ids(const std::function<i64(i64)>& of) {
  std::vector<double> all;
  for (i64 r = 0; r < row_count; ++r) all.push_back(double(of(r)));
  return all;
}

const std::pair<const char*, std::vector<double>> assignments[] = {
    {"even", ids([](i64 r) { return r % expert_count; })},
    {"one gets everything", ids([](i64) { return 3; })},
    {"skewed, and one without a row", ids([](i64 r) { return r % 10 == 0  ? 4
                                                             : r % 10 < 3 ? 0
                                                                          : 2; })},
    {"rows without an expert", ids([](i64 r) { return r % 7 - 1; })},
};

TEST(Choose, UnevenExperts) {
  for (const auto& [name, which] : assignments) {
    SCOPED_TRACE(name);
    Rows r;
    const Tensor y = choose(r.in, r.w, r.which, r.x, {r.s, r.f});
    const auto fill = [&](KernelRun& run) { run.fill(0, -1, 1), run.fill(1, -1, 1), run.set(2, which); };
    EXPECT_THAT(check_kernels(r.b.graph, y.value.node, 3, fill, 1e-13), testing::Contains("blocks"));
    const DimId x = r.b.intern(r.x);
    const Tensor dw = choose_grad(r.in, r.g, r.which, x, {x, r.b.intern(r.m), r.b.intern(r.f)});
    EXPECT_THAT(check_kernels(r.b.graph, dw.value.node, 3, fill, 1e-11), testing::Contains("blocks"));
  }
}

struct Routing {
  const char* name;
  i64 tokens;
  i64 (*expert)(i64 row);
};
constexpr Routing routings[] = {
    {"all rows to one expert", 290, [](i64) -> i64 { return 3; }},
    {"both choices of a token the same", 40, [](i64 row) { return row / 2 % expert_count; }},
    {"experts without rows", 33, [](i64 row) -> i64 { return row % 2 ? 4 : 1; }},
    {"one row each", 1, [](i64 row) { return row; }},
    {"no expert of here", 20, [](i64 row) -> i64 { return row % 2 ? -1 : expert_count; }},
    {"a single row among none", 20, [](i64 row) -> i64 { return row == 7 ? 2 : -1; }},
};

// Products of experts, what goes back through them and gradients of matrices that lie either way, all kernels against
// the plain one. Rows that one expert gets are enough for every way to multiply.
TEST(Choose, AnyRoutingInAnyType) {
  for (const DType t : {f32, f64, bf16})
    for (const Routing& routing : routings) {
      SCOPED_TRACE(fmt::format("{} {}", routing.name, name_of(t)));
      const Dim s{"s", routing.tokens}, j{"j", 2}, x{"x", expert_count}, m{"m", 120}, f{"f", 150};
      std::vector<double> which;
      for (i64 row = 0; row < 2 * routing.tokens; ++row) which.push_back(double(routing.expert(row)));
      Builder b;
      const Tensor names = input(b, "which", i32, {s, j}), h = input(b, "h", t, {s, m}),
                   u = input(b, "u", t, {s, j, f});
      const Tensor w = input(b, "w", t, {x, m, f}), turned = input(b, "turned", t, {x, f, m});
      std::vector<Tensor> all;
      for (const Tensor& matrices : {w, turned}) {
        const DimSet& dims = matrices.type().dims;
        all.push_back(choose(h, matrices, names, x, {s, j, f}));
        all.push_back(choose(u, matrices, names, x, {s, m}));  // added up over j
        all.push_back(choose_grad(h, u, names, b.intern(x), dims));
      }
      const auto fill = [&](KernelRun& run) { run.fill(0, -1, 1), run.fill(1, -1, 1), run.set(2, which); };
      const double tolerance = t == f32 ? 3e-4 : t == f64 ? 1e-12 : 0x1.02p-7;
      for (const Tensor& y : all)
        EXPECT_THAT(check_kernels(b.graph, y.value.node, 3, fill, tolerance), testing::Contains("blocks"));
    }
}

// Parts of the experts on two ranks add up to all of them, and rows of the other rank's are exactly zero.
TEST(Choose, APartOfTheExperts) {
  Rows r;
  const Tensor y = choose(r.in, r.w, r.which, r.x, {r.s, r.f});
  Dim part = r.x;
  part.name = "part", part.size = 3, part.logical = 5;
  const Tensor w = input(r.b, "part of w", f64, {part, r.m, r.f}), z = choose(r.in, w, r.which, part, {r.s, r.f});
  KernelRun all(r.b.graph, y.value.node, 1, KernelRun::contiguous);
  all.fill(0, -1, 1), all.fill(1, -1, 1), all.set(2, assignments[0].second);
  all.run(all.chosen());
  const std::vector<double> whole = all.operand(1), which = assignments[0].second;
  for (const i64 first : {0, 3}) {
    KernelRun run(r.b.graph, z.value.node, 1, KernelRun::contiguous);
    std::vector<double> own(3 * 7 * 9, 1e9);  // what lies beyond the last expert is not read
    std::copy(whole.begin() + first * 63, whole.begin() + std::min<i64>(first + 3, 5) * 63, own.begin());
    run.set(0, all.operand(0)), run.set(1, own), run.set(2, which);
    run.set_offset(1, r.b.intern(part), first);
    run.run(run.chosen());
    for (i64 i = 0; i < row_count; ++i) {
      const bool here = which[i] >= double(first) && which[i] < double(first + 3);
      for (i64 j = 0; j < 9; ++j) ASSERT_EQ(run.result()[i * 9 + j], here ? all.result()[i * 9 + j] : 0) << i;
    }
  }
}

TEST(Choose, GradientsAddUpOverMicrobatches) {
  Rows r;
  const DimId x = r.b.intern(r.x);
  const Tensor dw = choose_grad(r.in, r.g, r.which, x, {x, r.b.intern(r.m), r.b.intern(r.f)});
  for (const Kernel& k : cpu_kernels(*r.b.graph.node(dw.value).op)) {
    KernelRun run(r.b.graph, dw.value.node, 1, KernelRun::contiguous);
    run.call.accumulate = true;
    if (!accepts(k, run.call)) continue;
    run.fill(0, -1, 1), run.fill(1, -1, 1), run.set(2, assignments[2].second);
    run.run(k);
    const std::vector<double> once = run.result();
    run.now.overwrite = false;
    run.run(k);
    for (std::size_t i = 0; i < once.size(); ++i) ASSERT_NEAR(run.result()[i], 2 * once[i], 1e-10) << k.name;
  }
}

}  // namespace
}  // namespace stretto
