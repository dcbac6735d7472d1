// For every op, from its own examples: every kernel gives what the op's definition says (see oracle.h).
#include "ops/oracle.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/examples.h"
#include "stretto/base/hash.h"
#include "stretto/ops/rotary.h"

namespace stretto {
namespace {
using test::Buffer;
using test::Values;
using test::Variant;

constexpr Now some_time{.seed = 3, .step = 5, .first_row = 2};

std::vector<Buffer> operands_of(const Node& n, const Values& values) {
  std::vector<Buffer> all;
  for (Value v : n.operands) all.push_back(values.at(v));
  return all;
}

double largest_operand(const Graph& g, const Node& n, const std::vector<Buffer>& operands) {
  double largest = 0;
  for (std::size_t k = 0; k < operands.size(); ++k)
    test::for_each_valid(g, g.type(n.operands[k]),
                         [&](i64 i) { largest = std::max(largest, std::abs(operands[k].at(i))); });
  return largest;
}

// Every valid element of the node's results. Integers are exact; others are near, measured by the largest of the result
// and of the operands: a small difference of large numbers is as exact as they are.
void expect_definition(const Graph& g, const Node& n, const std::vector<Buffer>& operands,
                       const std::vector<Buffer>& results, double tolerance) {
  const auto oracle = test::oracle_of(*n.op);
  ASSERT_TRUE(oracle) << "no oracle";
  for (int r = 0; r < int(results.size()); ++r) {
    const Type& t = n.results[r];
    test::Element e{.graph = g, .node = n, .operands = operands, .now = some_time, .result = r, .at = {}};
    std::vector<std::pair<double, double>> pairs;  // computed, defined
    double scale = largest_operand(g, n, operands);
    e.each(t.dims, {}, [&](const test::At& at) {
      e.at = at;
      i64 offset = 0;
      for (DimId d : t.dims) offset = offset * g.size(d) + at[d];
      pairs.emplace_back(results[r].at(offset), oracle(e));
      scale = std::max(scale, std::abs(pairs.back().second));
    });
    // Beside what it was computed with: one rounding to bf16.
    const auto rounding = [&](double x) { return t.dtype == bf16 && x != 0 ? std::ldexp(1, std::ilogb(x) - 8) : 0; };
    for (const auto& [computed, defined] : pairs)
      EXPECT_LE(std::abs(computed - defined), is_float(t.dtype) ? tolerance * scale + rounding(defined) : 0)
          << "result " << r << " is " << computed << ", by definition " << defined << " in " << g.str(t);
  }
}

// Rotary turns pairs: a head of one element has none.
bool defined_for(const Graph& g, const Node& n) {
  return !n.attrs.is<RotaryAttrs>() || g.size(n.attrs.as<RotaryAttrs>().head) % 2 == 0;
}

void check_node(const Graph& g, NodeId id, const Values& values, double tolerance) {
  const Node& n = g.node(id);
  const std::vector<Buffer> operands = operands_of(n, values);
  if (n.op->view) {
    std::vector<Buffer> results;
    for (std::size_t r = 0; r < n.results.size(); ++r) results.push_back(values.at({id, std::uint8_t(r)}));
    return expect_definition(g, n, operands, results, tolerance);
  }
  const Call call = test::contiguous_call(g, n);
  for (const Kernel& kernel : cpu_kernels(*n.op)) {
    if (!accepts(kernel, call)) continue;
    SCOPED_TRACE(kernel.name);
    std::vector<Buffer> given = operands, results;  // a cache is written to
    for (const Type& t : n.results) results.emplace_back(g, t);
    std::vector<std::byte*> in, out;
    for (Buffer& b : given) in.push_back(b.data());
    for (Buffer& b : results) out.push_back(b.data());
    test::run_kernel(kernel, call, in, out, some_time);
    expect_definition(g, n, operands, results, tolerance);
  }
}

void check_op(const Op& op, DType type, double tolerance) {
  test::for_each_case(op, [&](std::size_t which) {
    for (const Variant variant : {Variant::plain, Variant::single, Variant::larger}) {
      const auto example = test::example_of(op, which, type, variant);
      if (!example) continue;
      const Graph& g = example->graph;
      std::mt19937 random(5);
      Values values;
      for (const Examples::Source& s : example->sources)
        values[s.value] = test::random_buffer(g, g.type(s.value), s, random);
      const Values given = values;
      evaluate(g, values, {.now = some_time});
      for (const auto& [v, buffer] : given) values[v] = buffer;
      for (std::uint32_t i = 0; i < g.nodes.size(); ++i)
        if (g.nodes[i].op == &op && defined_for(g, g.nodes[i])) check_node(g, NodeId{i}, values, tolerance);
    }
  });
}

class EveryValue : public testing::TestWithParam<const Op*> {};

TEST_P(EveryValue, IsTheDefinitionsInDouble) { check_op(*GetParam(), f64, 1e-13); }
TEST_P(EveryValue, IsTheDefinitionsInSingle) { check_op(*GetParam(), f32, 2e-6); }
TEST_P(EveryValue, IsTheDefinitionsRoundedOnceInBf16) { check_op(*GetParam(), bf16, 2e-6); }

std::vector<const Op*> ops_that_compute() {
  std::vector<const Op*> ops;
  for (const Op* op : all_ops())
    if (!op->given() && !op->collective) ops.push_back(op);  // shard/spmd.cpp and comm/ test collectives
  return ops;
}

INSTANTIATE_TEST_SUITE_P(Ops, EveryValue, testing::ValuesIn(ops_that_compute()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST(Oracles, EveryPointwiseOpHasItsOwnAndEveryOtherOneInTheTables) {
  for (const Op* op : ops_that_compute()) EXPECT_TRUE(test::oracle_of(*op)) << op->name << " has no oracle";
  for (const test::NamedOracle& o : test::named_oracles()) {
    const auto all = all_ops();
    const auto is_it = [&](const Op* op) { return op->name == o.op; };
    const auto it = std::find_if(all.begin(), all.end(), is_it);
    ASSERT_NE(it, all.end()) << o.op << " is no op";
    EXPECT_FALSE((*it)->value) << o.op << " has two oracles";
  }
}

}  // namespace
}  // namespace stretto
