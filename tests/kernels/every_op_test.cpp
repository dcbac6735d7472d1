// Kernels of every op, from the op's own examples: all against the reference on random shapes and strides, in place,
// adding up, and with bits that do not depend on where an element stands.
#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <random>

#include "stretto/ops/fused.h"
#include "stretto/ops/input.h"
#include "support/evaluate.h"
#include "support/example_runs.h"
#include "support/kernel_run.h"

namespace stretto {
namespace {
using test::Buffer;

class EveryKernel : public testing::TestWithParam<const Op*> {};

TEST_P(EveryKernel, AgreesWithTheReference) {
  const Op& op = *GetParam();
  if (cpu_kernels(op).empty()) GTEST_SKIP() << "a view or a source";
  for (DType type : {f32, f64, bf16}) {
    for_each_node(op, type, 8, [&](const Examples& e, const Graph& g, NodeId node, unsigned round) {
      const double tolerance = type == f32 ? 1e-5 : type == f64 ? 1e-12 : 0x1.02p-7;  // two roundings of bf16
      check_kernels(
          g, node, round, [&](KernelRun& run) { fill(run, e); }, tolerance);
      // ... and the reference on strided memory with itself on contiguous memory.
      KernelRun plain(g, node, round, KernelRun::contiguous), strided(g, node, round, KernelRun::strided);
      fill(plain, e);
      for (int i = 0; i < int(plain.call.in.size()); ++i) strided.set(i, plain.operand(i));
      plain.run(cpu_kernels(op).back());
      strided.run(cpu_kernels(op).back());
      for (int r = 0; r < int(plain.call.out.size()); ++r) {
        const std::vector<double> a = strided.result(r), b = plain.result(r);
        for (std::size_t i = 0; i < a.size(); ++i) ASSERT_LE(std::abs(a[i] - b[i]), tolerance * (1 + std::abs(b[i])));
      }
    });
  }
}

// Every value of an example's graph in random contiguous memory.
std::vector<Buffer> random_operands(const Call& call, const Examples& e, unsigned seed) {
  KernelRun run(call.graph, NodeId{std::uint32_t(&call.node - call.graph.nodes.data())}, seed, KernelRun::contiguous);
  fill(run, e);
  std::vector<Buffer> all;
  for (std::size_t i = 0; i < call.in.size(); ++i) {
    Buffer b(call.in[i].dtype, call.in[i].elements());
    const std::vector<double> values = run.operand(int(i));
    for (i64 k = 0; k < b.count(); ++k) b.set(k, values[std::size_t(k)]);
    all.push_back(std::move(b));
  }
  return all;
}

std::vector<std::byte*> pointers(std::vector<Buffer>& buffers) {
  std::vector<std::byte*> p;
  for (Buffer& b : buffers) p.push_back(b.data());
  return p;
}

std::vector<Buffer> result_buffers(const Call& call) {
  std::vector<Buffer> all;
  for (const View& v : call.out) all.emplace_back(v.dtype, v.elements());
  return all;
}

TEST_P(EveryKernel, MayWriteInPlace) {
  const Op& op = *GetParam();
  if (!op.in_place[0] || cpu_kernels(op).empty()) GTEST_SKIP() << "never in place";
  for (DType type : {f64, bf16}) {
    for_each_node(op, type, 8, [&](const Examples& e, const Graph& g, NodeId node, unsigned round) {
      const Call call = test::contiguous_call(g, g.node(node));
      for (const Kernel& kernel : cpu_kernels(op)) {
        if (!accepts(kernel, call)) continue;
        for (const std::optional<InPlace>& pair : op.in_place) {
          if (!pair) continue;
          const auto [operand, result] = *pair;
          if (g.type(g.node(node).operands[operand]) != g.node(node).results[result]) continue;
          std::vector<Buffer> in = random_operands(call, e, round), out = result_buffers(call);
          std::vector<Buffer> expected = result_buffers(call);
          test::run_kernel(kernel, call, pointers(in), pointers(expected));
          std::vector<std::byte*> to = pointers(out);
          to[result] = in[operand].data();
          test::run_kernel(kernel, call, pointers(in), to);
          for (i64 i = 0; i < expected[result].count(); ++i)
            EXPECT_EQ(in[operand].bits(i), expected[result].bits(i)) << kernel.name;
        }
      }
    });
  }
}

TEST_P(EveryKernel, AddsUpWhenAsked) {
  const Op& op = *GetParam();
  if (!op.accumulates) GTEST_SKIP() << "overwrites only";
  for_each_node(op, f64, 8, [&](const Examples& e, const Graph& g, NodeId node, unsigned round) {
    Call call = test::contiguous_call(g, g.node(node));
    std::vector<Buffer> in = random_operands(call, e, round), once = result_buffers(call);
    test::run_kernel(cpu_kernels(op).back(), call, pointers(in), pointers(once));
    call.accumulate = true;
    for (const Kernel& kernel : cpu_kernels(op)) {
      if (!accepts(kernel, call)) continue;
      std::vector<Buffer> out = result_buffers(call);
      for (i64 i = 0; i < out[0].count(); ++i) out[0].set(i, 0.25 * double(i));
      test::run_kernel(kernel, call, pointers(in), pointers(out), {.overwrite = false});
      for (i64 i = 0; i < out[0].count(); ++i)
        EXPECT_NEAR(out[0].at(i), 0.25 * double(i) + once[0].at(i), 1e-12 * (1 + std::abs(out[0].at(i))))
            << kernel.name;
      for (i64 i = 0; i < out[0].count(); ++i) out[0].set(i, std::nan(""));
      test::run_kernel(kernel, call, pointers(in), pointers(out), {.overwrite = true});
      for (i64 i = 0; i < out[0].count(); ++i)
        EXPECT_NEAR(out[0].at(i), once[0].at(i), 1e-12 * (1 + std::abs(once[0].at(i)))) << kernel.name;
    }
  });
}

// A pointwise op over n elements that start anywhere gives every element the bits it has in a long aligned run.
TEST_P(EveryKernel, BitsDoNotDependOnThePlace) {
  const Op& op = *GetParam();
  if (!op.pointwise) GTEST_SKIP() << "not pointwise";
  constexpr i64 length = 96;
  for (DType type : {f32, f64, bf16}) {
    Examples e;
    e.dtype = type;
    op.examples(e);
    const Graph& g = e.builder.graph;
    const auto node = std::find_if(g.nodes.begin(), g.nodes.end(), [&](const Node& n) { return n.op == &op; });
    std::mt19937 random(3);
    const auto line = [&](DType t, i64 n) {
      return View{.dtype = t, .dims = {DimId{0}}, .sizes = {n}, .strides = {1}, .offsets = {0}, .limits = {n}};
    };
    const auto call_of = [&](i64 n) {
      Call call{.graph = g, .node = *node, .in = {}, .out = {line(node->results[0].dtype, n)}};
      for (Value v : node->operands) call.in.push_back(line(g.type(v).dtype, n));
      return call;
    };
    std::vector<Buffer> in;
    for (Value v : node->operands) {
      Buffer b(g.type(v).dtype, length);
      for (i64 i = 0; i < length; ++i)
        b.set(i, b.dtype() == i32 ? double(random() % 2) : std::uniform_real_distribution<double>(0.1, 3)(random));
      in.push_back(std::move(b));
    }
    const Kernel& kernel = cpu_kernels(op)[0];
    Buffer whole(node->results[0].dtype, length);
    test::run_kernel(kernel, call_of(length), pointers(in), {whole.data()});
    for (i64 start = 0; start < 17; ++start)
      for (i64 n = 1; n <= 33; ++n) {
        Buffer out(whole.dtype(), length);
        std::vector<std::byte*> from;
        for (Buffer& b : in) from.push_back(b.element(start));
        const i64 shift = n % 3;  // results may be aligned differently
        test::run_kernel(kernel, call_of(n), from, {out.element(shift)});
        for (i64 i = 0; i < n; ++i)
          ASSERT_EQ(out.bits(shift + i), whole.bits(start + i)) << start << "+" << i << " of " << n;
        ASSERT_EQ(out.bits(shift + n), 0u) << "wrote beyond the end";
      }
  }
}

// Threads that share a kernel's work, however little it is, give every element the bits that one thread gives it.
TEST_P(EveryKernel, ThreadsChangeNoBits) {
  const Op& op = *GetParam();
  if (cpu_kernels(op).empty()) GTEST_SKIP() << "a view or a source";
  std::vector<std::unique_ptr<Team>> teams;
  for (const int threads : {2, 3, 5, 8})
    teams.push_back(std::make_unique<Team>(TeamOptions{.threads = threads, .least = 0}));
  const auto bits = [](const KernelRun& run) {
    std::vector<std::vector<u64>> all;
    for (std::size_t r = 0; r < run.call.out.size(); ++r) {
      all.emplace_back();
      for (const double x : run.result(int(r))) all.back().push_back(std::bit_cast<u64>(x));
    }
    return all;
  };
  for (const DType type : {f32, f64, bf16}) {
    for_each_node(op, type, 8, [&](const Examples& e, const Graph& g, NodeId node, unsigned round) {
      KernelRun run(g, node, round, round % 2 ? KernelRun::strided : KernelRun::contiguous);
      fill(run, e);
      for (const bool adds : {false, true}) {
        if (adds && !op.accumulates) continue;
        run.call.accumulate = adds, run.now.overwrite = !adds;
        for (const Kernel& kernel : cpu_kernels(op)) {
          if (!accepts(kernel, run.call)) continue;
          KernelRun alone = run;
          alone.run(kernel);
          for (const auto& team : teams) {
            KernelRun shared = run;
            shared.run(kernel, {}, team.get());
            ASSERT_EQ(bits(shared), bits(alone)) << kernel.name << " by " << team->threads() << " threads";
          }
        }
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, EveryKernel, testing::ValuesIn(all_ops().begin(), all_ops().end()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace stretto
