#include "stretto/ops/contract.h"

#include <gmock/gmock.h>

#include <array>
#include <random>

#include "stretto/kernels/cpu/bf16_tiles.h"
#include "stretto/ops/input.h"
#include "support/evaluate.h"
#include "support/kernel_run.h"
#include "support/message.h"

namespace stretto {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

void random_operands(KernelRun& r) {
  r.fill(0, -1, 1);
  r.fill(1, -1, 1);
}

struct Product {
  Builder builder;
  Tensor out;
  Product(DType t, Dims a, Dims b, Dims over, Along kept = {}) {
    out = contract(input(builder, "a", t, a), input(builder, "b", t, b), over, kept);
  }
  std::string_view kernel() const {
    return KernelRun(builder.graph, out.value.node, 1, KernelRun::contiguous).chosen().name;
  }
};

TEST(Contract, ValuesOfASmallProduct) {
  const Dim m{"m", 2}, k{"k", 3}, n{"n", 2};
  Product p(f64, {m, k}, {k, n}, k);
  for (const Kernel& kernel : cpu_kernels(*p.builder.graph.node(p.out.value).op)) {
    KernelRun r(p.builder.graph, p.out.value.node, 1, KernelRun::strided);
    if (!accepts(kernel, r.call)) continue;
    r.set(0, {1, 2, 3, 4, 5, 6});
    r.set(1, {1, 0, 0, 1, 2, -1});
    r.run(kernel);
    EXPECT_EQ(r.result(), (std::vector<double>{7, -1, 16, -1})) << kernel.name;
  }
}

// The products of a transformer step run without copies, in every orientation of the weights.
TEST(Contract, ModelShapesNeedNoPacking) {
  const Dim b{"b", 2}, s{"s", 24}, m{"m", 32}, h{"h", 4}, d{"d", 8}, three{"three", 3}, f{"f", 48};
  EXPECT_EQ(Product(f32, {b, s, m}, {m, f}, m).kernel(), "gemm");
  EXPECT_EQ(Product(f32, {b, s, m}, {f, m}, m).kernel(), "gemm");
  EXPECT_EQ(Product(f32, {b, s, m}, {m, three, h, d}, m).kernel(), "gemm");
  EXPECT_EQ(Product(f32, {b, s, h, d}, {h, d, m}, {h, d}).kernel(), "gemm");
  EXPECT_EQ(Product(f32, {b, s, h, d}, {m, h, d}, {h, d}).kernel(), "gemm");
  EXPECT_EQ(Product(f32, {b, s, three, h, d}, {m, three, h, d}, {three, h, d}).kernel(), "gemm");
  EXPECT_EQ(Product(f32, {b, s, m}, {b, s, f}, {b, s}).kernel(), "gemm");
  // Both orientations of a weight's gradient: the order of the result's dims decides, not that of the operands.
  for (const bool turned : {false, true}) {
    Builder builder;
    const Tensor x = input(builder, "x", f32, {b, s, m}), g = input(builder, "g", f32, {b, s, f});
    const Tensor w =
        contract_into_order(x, g, builder.intern(Dims{b, s}), {}, builder.intern(turned ? Dims{f, m} : Dims{m, f}));
    EXPECT_EQ(KernelRun(builder.graph, w.value.node, 1, KernelRun::contiguous).chosen().name, "gemm");
    EXPECT_THAT(check_kernels(builder.graph, w.value.node, 3, random_operands, 1e-4), Contains("gemm"));
  }
  // Heads innermost leave no unit stride anywhere.
  EXPECT_EQ(Product(f32, {b, s, d, h}, {b, m, d, h}, d, along({b, h})).kernel(), "packed");
}

TEST(Contract, KernelsAgreeOnRandomDims) {
  std::mt19937 random(7);
  std::vector<std::string> ran;
  for (int round = 0; round < 150; ++round) {
    // Every dim belongs to a role; orders are shuffled per operand and for the result.
    std::vector<Dim> roles[4];
    const int count[4] = {int(random() % 3), int(random() % 3), int(random() % 2) + 1, int(random() % 2)};
    const i64 sizes[] = {1, 2, 3, 5, 8, 17};
    for (int role = 0; role < 4; ++role)
      for (int i = 0; i < count[role]; ++i) {
        Dim d{fmt::format("{}{}", "mnkl"[role], i), sizes[random() % 6] * (round % 5 == 0 ? 3 : 1)};
        roles[role].push_back(random() % 6 ? d : d.padded(4));
      }
    const auto joined = [&](std::initializer_list<int> which) {
      Dims all;
      for (int role : which) all.insert(all.end(), roles[role].begin(), roles[role].end());
      if (random() % 2) std::shuffle(all.begin(), all.end(), random);
      return all;
    };
    double volume = 1;
    for (const auto& role : roles)
      for (const Dim& d : role) volume *= double(d.size);
    if (volume > 3e5) continue;
    Builder b;
    const DType t = random() % 2 ? f32 : random() % 2 ? f64 : bf16;
    const Tensor x = input(b, "x", t, joined({0, 2, 3})), y = input(b, "y", t, joined({3, 2, 1}));
    const Tensor z =
        contract_into_order(x, y, b.intern(joined({2})), b.intern(joined({3})), b.intern(joined({0, 3, 1})));
    for (const std::string& name : check_kernels(b.graph, z.value.node, u64(round), random_operands,
                                                 t == f32   ? 1e-4
                                                 : t == f64 ? 1e-12
                                                            : 0x1.02p-7))
      ran.push_back(name);
    if (HasFailure()) FAIL() << "round " << round << "\n" << b.graph.str();
  }
  EXPECT_THAT(ran, Contains("gemm"));
  EXPECT_THAT(ran, Contains("packed"));
}

// bf16, where the processor multiplies tiles: every orientation of operands and result, results in f32, adding up.
TEST(Contract, TilesAgreeWithTheReference) {
  if (bf16_form().empty()) GTEST_SKIP() << "this processor, or system, has no products of bf16";
  const Dim b{"b", 2}, s{"s", 24}, m{"m", 48}, f{"f", 40}, h{"h", 3}, wide_sum{"k", 4200};
  const auto expect_tiles = [](const Builder& builder, Tensor t) {
    EXPECT_EQ(KernelRun(builder.graph, t.value.node, 1, KernelRun::contiguous).chosen().name, "tiles");
    check_kernels(builder.graph, t.value.node, 3, random_operands, 0x1.02p-7);
  };
  for (const bool turned : {false, true})
    for (const bool wide : {false, true}) {
      Builder builder;
      const Tensor x = input(builder, "x", bf16, {b, s, m}),
                   w = input(builder, "w", bf16, turned ? Dims{f, m} : Dims{m, f});
      expect_tiles(builder, wide ? contract_wide(x, w, m) : contract(x, w, m));
      const Tensor g = input(builder, "g", bf16, {b, s, f});
      expect_tiles(builder, contract_into_order(x, g, builder.intern(Dims{b, s}), {},
                                                builder.intern(turned ? Dims{f, m} : Dims{m, f})));
      const Tensor heads = input(builder, "heads", bf16, {h, s, m}), each = input(builder, "each", bf16, {h, m, f});
      expect_tiles(builder, contract(heads, each, m, along(h)));
      // More than is summed at a time.
      const Tensor p = input(builder, "p", bf16, {s, wide_sum}), q = input(builder, "q", bf16, {wide_sum, f});
      expect_tiles(builder, wide ? contract_wide(p, q, wide_sum) : contract(p, q, wide_sum));
    }
  Builder builder;
  const Tensor x = input(builder, "x", bf16, {s, m}), w = input(builder, "w", bf16, {m, f});
  const Tensor y = contract_wide(x, w, m);
  Call call = test::contiguous_call(builder.graph, builder.graph.node(y.value));
  call.accumulate = true;
  test::Buffer a(builder.graph, x.type()), c(builder.graph, w.type()), once(builder.graph, y.type());
  for (i64 i = 0; i < a.count(); ++i) a.set(i, double(i % 7) - 3);
  for (i64 i = 0; i < c.count(); ++i) c.set(i, double(i % 5) - 1);
  test::Buffer twice = once;
  const auto add = [&](test::Buffer& to, bool overwrite) {
    test::run_kernel(choose_kernel(call), call, {a.data(), c.data()}, {to.data()}, {.overwrite = overwrite});
  };
  add(once, true), add(twice, true), add(twice, false);
  for (i64 i = 0; i < once.count(); ++i) ASSERT_EQ(twice.at(i), 2 * once.at(i));
}

// Rows of a product that is cut have the bits of the whole one, where alike_by_rows says so.
TEST(Contract, StripesHaveTheBitsOfTheWhole) {
  std::mt19937 random(7);
  const auto one_of = [&](std::initializer_list<i64> list) { return list.begin()[random() % list.size()]; };
  int tried = 0;
  for (int i = 0; i < 400; ++i) {
    const DType type = std::array{f32, f64, bf16}[random() % 3];
    const i64 rows = one_of({16, 32, 48, 64, 128}), parts = one_of({2, 3, 4}),
              n = one_of({16, 24, 48, 64, 128, 272, 344}),
              k = one_of({16, 40, 64, 200, 256, 400, 512, 700});
    if (!alike_by_rows(rows, n, k, type)) continue;
    ++tried;
    const bool turned = random() % 2, first = random() % 2;  // how the weights lie; which operand has the rows
    const auto product = [&](i64 m) {
      const Dim r{"r", m}, c{"c", n}, s{"s", k};
      const Dims weights = turned ? Dims{c, s} : Dims{s, c};
      return first ? Product(type, {r, s}, weights, s) : Product(type, weights, {r, s}, s);
    };
    const Product all = product(rows * parts), part = product(rows);
    KernelRun whole(all.builder.graph, all.out.value.node, u64(i), KernelRun::contiguous),
        stripe(part.builder.graph, part.out.value.node, 1, KernelRun::contiguous);
    random_operands(whole);
    whole.run(whole.chosen());
    const int x = first ? 0 : 1;
    const std::vector<double> have = whole.operand(x), want = whole.result();
    stripe.set(1 - x, whole.operand(1 - x));
    for (i64 p = 0; p < parts; ++p) {
      stripe.set(x, {have.begin() + p * rows * k, have.begin() + (p + 1) * rows * k});
      stripe.run(stripe.chosen());
      const std::vector<double> got = stripe.result();
      for (i64 row = 0; row < rows; ++row)
        for (i64 column = 0; column < n; ++column)
          ASSERT_EQ(got[first ? row * n + column : column * rows + row],
                    want[first ? (p * rows + row) * n + column : column * rows * parts + p * rows + row])
              << name_of(type) << ", " << rows << " rows of " << rows * parts << ", n " << n << ", k " << k;
    }
  }
  EXPECT_GT(tried, 100);
}

TEST(Contract, ShardOfOnlyPaddingGivesZero) {
  const Dim m{"m", 3}, k = Dim{"k", 5}.padded(8), n{"n", 4};
  Product p(f32, {m, k}, {k, n}, k);
  for (const Kernel& kernel : cpu_kernels(*p.builder.graph.node(p.out.value).op)) {
    KernelRun r(p.builder.graph, p.out.value.node, 1, KernelRun::contiguous);
    for (View* v : {&r.call.in[0], &r.call.in[1]}) v->limits[std::size_t(position(v->dims, p.builder.intern(k)))] = 0;
    if (!accepts(kernel, r.call)) continue;
    random_operands(r);
    r.run(kernel);
    EXPECT_EQ(r.result(), std::vector<double>(12, 0)) << kernel.name;
  }
}

TEST(Contract, MistakesAreNamed) {
  const Dim b{"b", 2}, m{"model", 4}, n{"ff", 8};
  Builder g;
  const Tensor x = input(g, "x", f32, {b, m}), w = input(g, "w", f32, {m, n}), y = input(g, "y", f32, {b, n});
  EXPECT_THAT(refusal_of([&] { contract(x, w, {}); }),
              HasSubstr("[contract] no dim to sum over: x{b=2 model=4} times"));
  EXPECT_THAT(refusal_of([&] { contract(y, w, {}); }), HasSubstr("hint: name the dim in over"));
  EXPECT_THAT(refusal_of([&] { contract(x, y, m); }),
              HasSubstr("dim 'model' is named in over but y{b=2 ff=8} lacks it"));
  EXPECT_THAT(refusal_of([&] { contract(x, w, Dim{"mode", 4}); }), HasSubstr("did you mean 'model'?"));
  EXPECT_THAT(refusal_of([&] {
                contract(x, w, Dim{"model", 5});
              }),
              HasSubstr("[contract] dim 'model' is 4 in x{b=2 model=4} and 5 in over"));
  const Tensor v = input(g, "v", f32, {b, m, n});
  EXPECT_THAT(refusal_of([&] { contract(x, v, m); }),
              HasSubstr("dim 'b' is in both operands and named in neither over nor along: x{b=2 model=4} times "));
  EXPECT_THAT(refusal_of([&] { contract(x, v, m, along(m)); }), HasSubstr("dim 'b' is in both operands"));
  EXPECT_THAT(refusal_of([&] { contract(x, v, {m, m}, along(b)); }), HasSubstr("named twice in over"));
  EXPECT_THAT(refusal_of([&] { contract(x, v, m, along({b, m})); }), HasSubstr("is named in over and in along"));
  EXPECT_THAT(refusal_of([&] { contract(x, input(g, "i", i32, {m}), m); }), HasSubstr("is f32 and i{model=4} is i32"));
  EXPECT_THAT(refusal_of([&] { contract(x, Tensor{}, m); }), HasSubstr("empty"));
}

}  // namespace
}  // namespace stretto
