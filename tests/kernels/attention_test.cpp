#include "stretto/ops/attention.h"

#include <gmock/gmock.h>

#include <random>

#include "stretto/ops/attention_grad.h"
#include "stretto/ops/input.h"
#include "support/kernel_run.h"

namespace stretto {
namespace {

using testing::HasSubstr;

struct Sizes {
  i64 batch, queries, keys, kv, group, head;
  bool causal;
  i64 first_query = 0, first_key = 0;
  i64 value = 0;  // 0: as head
  i64 window = 0;
  double softcap = 0;
  i64 document = 0;  // its length; 0: there are none
  bool sinks = false;
  i64 chunk = 0;
  i64 ahead =
      0;  // a query sees up to so many keys behind its own, another number in every row; 0: none, as causal says
};

void compare(const Sizes& z, DType t, u64 seed, int order = 0) {
  Builder b;
  const Dim batch{"batch", z.batch}, s{"s", z.queries}, k{"k", z.keys}, kv{"kv", z.kv}, group{"group", z.group},
      d{"d", z.head}, wide = z.value ? Dim{"wide", z.value} : d;
  const auto dims_of_q = [&](const Dim& head) {
    return order ? Dims{kv, head, group, batch, s} : Dims{batch, s, kv, group, head};
  };
  const auto dims_of_k = [&](const Dim& head) { return order ? Dims{kv, k, head, batch} : Dims{batch, k, kv, head}; };
  Dims l_dims = dims_of_q(d);
  std::erase(l_dims, d);
  const auto real = [&](Dims dims) { return input(b, fmt::format("x{}", b.graph.nodes.size()), t, dims); };
  const Tensor q = real(dims_of_q(d)), key = real(dims_of_k(d)), value = real(dims_of_k(wide));
  AttentionExtras more;
  if (z.document) more.since = input(b, "since", i32, {batch, s});
  if (z.ahead) more.until = input(b, "until", i32, {batch, s});
  if (z.sinks) more.sinks = real({group, kv});
  const Tensor o = attention(q, key, value,
                             {.query = s,
                              .key = k,
                              .head = d,
                              .value = z.value ? std::optional(wide) : std::nullopt,
                              .causal = z.causal && !z.ahead,
                              .window = z.window,
                              .chunk = z.chunk,
                              .softcap = z.softcap},
                             more);
  const AttentionAttrs attrs = b.graph.node(o.value).attrs.as<AttentionAttrs>();
  const Tensor dq = attention_grad(q, key, value, real(dims_of_q(wide)), real(l_dims), real(dims_of_q(wide)), attrs,
                                   more.since, more.until);
  std::vector<double> first;  // documents of another length in every row of the batch
  for (i64 row = 0; row < z.batch; ++row)
    for (i64 i = 0; i < z.queries && z.document; ++i) {
      const i64 length = z.document + row;
      first.push_back(double((z.first_query + i) / length * length));
    }
  std::vector<double> last;
  std::mt19937 random(static_cast<unsigned>(seed));
  for (i64 i = 0; i < z.batch * z.queries && z.ahead; ++i)
    last.push_back(double(z.first_query + i % z.queries + 1 + i64(random() % u64(z.ahead))));
  const auto place = [&](KernelRun& r) {
    const bool grad = r.call.out.size() == 3;
    for (int i = 0; i < int(r.call.in.size()); ++i) {
      const bool is_lse = grad && i == 4, is_since = z.document && i == (grad ? 6 : 3);
      const bool is_until = z.ahead && i == (grad ? 6 : 3) + (z.document ? 1 : 0);
      if (is_since)
        r.set(i, first);
      else if (is_until)
        r.set(i, last);
      else
        r.fill(i, is_lse ? 4 : -1, is_lse ? 5 : 1);
      const DimSet& dims = r.call.in[std::size_t(i)].dims;
      if (contains(dims, attrs.query)) r.set_offset(i, attrs.query, z.first_query);
      if (contains(dims, attrs.key)) r.set_offset(i, attrs.key, z.first_key);
    }
  };
  const double tolerance = t == f32 ? 2e-5 : 1e-13;
  check_kernels(b.graph, o.value.node, seed, place, tolerance);
  check_kernels(b.graph, o.value.node, seed, place, tolerance, {1});
  check_kernels(b.graph, dq.value.node, seed, place, tolerance);
  check_kernels(b.graph, dq.value.node, seed, place, tolerance, {0});
  check_kernels(b.graph, dq.value.node, seed, place, tolerance, {1});
  check_kernels(b.graph, dq.value.node, seed, place, tolerance, {2});
}

TEST(Attention, KernelsAgreeOnRandomSizes) {
  std::mt19937 random(11);
  for (int round = 0; round < 40; ++round) {
    const auto upto = [&](i64 n) { return i64(random() % u64(n)) + 1; };
    const Sizes z{.batch = upto(2),
                  .queries = upto(60),
                  .keys = upto(60),
                  .kv = upto(2),
                  .group = upto(2),
                  .head = upto(20),
                  .causal = random() % 3 > 0,
                  .first_query = round % 4 == 0 ? upto(30) : 0,
                  .first_key = round % 5 == 0 ? upto(30) : 0};
    compare(z, round % 2 ? f32 : f64, u64(round), round % 3 == 0);
    if (HasFailure())
      FAIL() << fmt::format("round {}: {} queries from {}, {} keys from {}, {} kv, {} group, {} head, causal {}", round,
                            z.queries, z.first_query, z.keys, z.first_key, z.kv, z.group, z.head, z.causal);
  }
}

TEST(Attention, ManyKeysAreTakenInBlocks) {
  for (const DType t : {f32, f64}) {
    compare({1, 50, 1100, 1, 2, 3, false}, t, 1);
    compare({1, 70, 1100, 1, 1, 5, true, 1000}, t, 2);
    compare({1, 560, 560, 1, 1, 3, true}, t, 3);
  }
}

// Every kind of attention: with windows, documents, soft caps, sinks and values of another size, in any product.
TEST(Attention, KernelsAgreeOnEveryKind) {
  std::mt19937 random(12);
  for (int round = 0; round < 60; ++round) {
    const auto upto = [&](i64 n) { return i64(random() % u64(n)) + 1; };
    const auto some = [&] { return random() % 2 == 0; };
    const i64 length = upto(round % 10 == 0 ? 700 : 90);
    const Sizes z{.batch = upto(2),
                  .queries = length,
                  .keys = length,
                  .kv = upto(2),
                  .group = upto(2),
                  .head = upto(20),
                  .causal = true,
                  .value = some() ? upto(40) : 0,
                  .window = some() ? upto(length) : 0,
                  .softcap = some() ? 0.5 : 0,
                  .document = some() ? upto(length) : 0,
                  .sinks = some(),
                  .chunk = some() ? upto(length) : 0,
                  .ahead = some() ? upto(length) : 0};
    compare(z, round % 2 ? f32 : f64, u64(round), round % 3 == 0);
    if (HasFailure())
      FAIL() << fmt::format(
          "round {}: {} positions, head {}, value {}, window {}, softcap {}, documents {}, sinks {}, chunk {}, ahead "
          "{}",
          round, length, z.head, z.value, z.window, z.softcap, z.document, z.sinks, z.chunk, z.ahead);
  }
}

// Blocks of keys that no query of a block sees are left out, and the first query of a rank is not the first of all.
TEST(Attention, WindowsAndDocumentsOverManyBlocks) {
  for (const DType t : {f32, f64}) {
    compare({.batch = 1, .queries = 1300, .keys = 1300, .kv = 1, .group = 1, .head = 3, .causal = true, .window = 100},
            t, 1);
    compare(
        {.batch = 2, .queries = 1300, .keys = 1300, .kv = 1, .group = 1, .head = 3, .causal = true, .document = 333}, t,
        2);
    compare({.batch = 2,
             .queries = 100,
             .keys = 1100,
             .kv = 1,
             .group = 2,
             .head = 5,
             .causal = true,
             .first_query = 1000,
             .window = 40},
            t, 3);
    compare({.batch = 2,
             .queries = 100,
             .keys = 1100,
             .kv = 1,
             .group = 2,
             .head = 5,
             .causal = true,
             .first_query = 1000,
             .document = 30},
            t, 4);
    compare({.batch = 1, .queries = 1300, .keys = 1300, .kv = 1, .group = 1, .head = 3, .causal = true, .chunk = 100},
            t, 5);
    compare({.batch = 2,
             .queries = 100,
             .keys = 1100,
             .kv = 1,
             .group = 2,
             .head = 5,
             .causal = true,
             .first_query = 970,
             .chunk = 60,
             .ahead = 90},
            t, 6);
  }
}

TEST(Attention, PaddedDimsTakeNoPart) {
  Builder b;
  const Dim s = Dim{"s", 9}.padded(4), k = Dim{"k", 13}.padded(16), d = Dim{"d", 7}.padded(8), h{"h", 2};
  const Tensor q = input(b, "q", f32, {s, h, d}), key = input(b, "k", f32, {k, h, d}),
               value = input(b, "v", f32, {k, h, d});
  const Tensor o = attention(q, key, value, {.query = s, .key = k, .head = d, .causal = false});
  EXPECT_NEAR(b.graph.node(o.value).attrs.as<AttentionAttrs>().scale, 1 / std::sqrt(7.0), 1e-15);
  const auto fill = [](KernelRun& r) {
    for (int i = 0; i < 3; ++i) r.fill(i, -1, 1);
  };
  check_kernels(b.graph, o.value.node, 3, fill, 1e-5);
  KernelRun run(b.graph, o.value.node, 3, KernelRun::contiguous);
  fill(run);
  run.run(run.chosen());
  EXPECT_EQ(run.result(0).back(), 0);
  for (const double x : run.result(0)) EXPECT_LT(std::abs(x), 1);
}

TEST(Attention, FirstQuerySeesOnlyItsOwnKey) {
  Builder b;
  const Dim s{"s", 3}, k{"k", 3}, d{"d", 2};
  const Tensor o = attention(input(b, "q", f64, {s, d}), input(b, "k", f64, {k, d}), input(b, "v", f64, {k, d}),
                             {.query = s, .key = k, .head = d});
  for (const Kernel& kernel : cpu_kernels(*b.graph.node(o.value).op)) {
    KernelRun run(b.graph, o.value.node, 1, KernelRun::contiguous);
    run.fill(0, -1, 1);
    run.set(1, {0, 0, 0, 0, 0, 0});
    run.set(2, {1, 2, 3, 4, 8, 0});
    run.run(kernel);
    const std::vector<double> expected{1, 2, 2, 3, 4, 2};
    for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(run.result(0)[i], expected[i], 1e-14) << kernel.name;
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(run.result(1)[i], std::log(double(i + 1)), 1e-14) << kernel.name;
  }
}

// A prefix sees itself, what follows sees the prefix and what came before it.
TEST(Attention, UntilMakesPrefixes) {
  Builder b;
  const Dim s{"s", 4}, k{"k", 4}, d{"d", 2};
  const Tensor o = attention(input(b, "q", f64, {s, d}), input(b, "k", f64, {k, d}), input(b, "v", f64, {k, d}),
                             {.query = s, .key = k, .head = d, .causal = false}, {.until = input(b, "u", i32, {s})});
  for (const Kernel& kernel : cpu_kernels(*b.graph.node(o.value).op)) {
    KernelRun run(b.graph, o.value.node, 1, KernelRun::contiguous);
    run.fill(0, -1, 1);
    run.set(1, std::vector<double>(8, 0));
    run.set(2, {2, 4, 4, 0, 0, 2, 6, 2});
    run.set(3, {2, 2, 3, 4});
    run.run(kernel);
    const std::vector<double> expected{3, 2, 3, 2, 2, 2, 3, 2};
    for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(run.result(0)[i], expected[i], 1e-14) << kernel.name;
  }
}

TEST(Attention, MistakesAreNamed) {
  Builder b;
  const Dim s{"s", 3}, k{"k", 3}, d{"d", 2}, h{"h", 2};
  const Tensor q = input(b, "q", f64, {s, d}), key = input(b, "k", f64, {k, d}), wide = input(b, "w", f64, {k, h, d});
  const auto message = [](const auto& f) -> std::string {
    try {
      f();
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  };
  const AttentionOptions o{.query = s, .key = k, .head = d};
  EXPECT_THAT(message([&] { attention(q, q, q, {.query = s, .key = s, .head = d}); }),
              HasSubstr("[attention] the query dim 's' is in q{s=3 d=2}, which has the keys' dims; hint: rename"));
  EXPECT_THAT(message([&] { attention(q, key, wide, o); }), HasSubstr("have different dims"));
  EXPECT_THAT(message([&] { attention(q, wide, wide, o); }), HasSubstr("dim 'h' that the queries q{s=3 d=2} lack"));
  const Tensor until = input(b, "u", i32, {s});
  EXPECT_THAT(message([&] { attention(q, key, key, o, {.until = until}); }), HasSubstr("beside causal attention"));
  EXPECT_THAT(message([&] { attention(q, key, key, {.query = s, .key = k, .head = d, .causal = false, .chunk = 2}); }),
              HasSubstr("chunk 2 of attention that is not causal"));
  EXPECT_THAT(message([&] { attention(q, key, key, o, {.since = input(b, "f", i32, {k})}); }),
              HasSubstr("first keys f{k=3} must be i32 along 's'"));
  EXPECT_THAT(message([&] { attention(q, key, key, {.query = s, .key = k}); }), HasSubstr("the head dim is not named"));
  EXPECT_THAT(message([&] { attention(q, input(b, "f", f32, {k, d}), key, o); }), HasSubstr("is f64 and"));
}

}  // namespace
}  // namespace stretto
