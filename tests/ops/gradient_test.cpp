// For every op, from its own examples: the gradient against central differences in f64, and f32 against f64.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/examples.h"
#include "stretto/autodiff/autodiff.h"
#include "stretto/ops/input.h"
#include "support/evaluate.h"

namespace stretto {
namespace {
using test::Buffer;
using test::for_each_case;
using test::for_each_valid;
using test::Values;
using test::Variant;

// One example, its seeds and its gradients as a graph of its own.
struct Problem {
  Builder builder;
  std::vector<Examples::Source> sources;
  std::vector<Value> results, seeds;
  std::vector<std::optional<Value>> gradients;  // per real source
};

bool is_real(const Graph& g, const Examples::Source& s) { return is_float(g.type(s.value).dtype); }

// The case's nodes only; seeds and gradients are added. False when the variant does not apply.
bool make_problem(Problem& p, const Op& op, std::size_t which, DType type, Variant variant = Variant::plain) {
  std::optional<test::Example> e = test::example_of(op, which, type, variant);
  if (!e) return false;
  p.builder.graph = std::move(e->graph);
  p.sources = std::move(e->sources);
  p.results = std::move(e->results);
  std::vector<Root> roots;
  for (Value v : p.results) {
    const Type t = p.builder.graph.type(v);
    if (!is_float(t.dtype)) continue;
    const Tensor seed = input(p.builder, fmt::format("seed{}", roots.size()), t.dtype, p.builder.graph.named(t.dims));
    p.seeds.push_back(seed.value);
    roots.push_back({{&p.builder, v}, seed});
  }
  std::vector<Tensor> wrt;
  for (const Examples::Source& s : p.sources)
    if (is_real(p.builder.graph, s)) wrt.push_back({&p.builder, s.value});
  const std::vector<Gradient> found = differentiate(p.builder, roots, wrt);
  for (const Tensor& t : wrt) {
    p.gradients.emplace_back();
    for (const Gradient& g : found)
      if (g.of.value == t.value) p.gradients.back() = g.grad.value;
  }
  return true;
}

Values inputs(const Problem& p, unsigned random_seed) {
  std::mt19937 random(random_seed);
  Values values;
  const Graph& g = p.builder.graph;
  for (const Examples::Source& s : p.sources) values[s.value] = test::random_buffer(g, g.type(s.value), s, random);
  for (Value v : p.seeds) values[v] = test::random_buffer(g, g.type(v), {v, -1, 1, 0}, random);
  return values;
}

double largest(const Graph& g, const Type& t, const Buffer& b) {
  double m = 0;
  for_each_valid(g, t, [&](i64 i) { m = std::max(m, std::abs(b.at(i))); });
  return m;
}

class EveryOp : public testing::TestWithParam<const Op*> {};

// In bf16 a gradient has its operand's type, whatever it was summed in.
TEST_P(EveryOp, HasGradientsOfItsOperandsTypeInBf16) {
  for_each_case(*GetParam(), [&](std::size_t which) {
    Problem p;
    if (!make_problem(p, *GetParam(), which, bf16)) return;
    const Graph& g = p.builder.graph;
    EXPECT_TRUE(verify(g).empty()) << g.str();
    std::size_t k = 0;
    for (const Examples::Source& s : p.sources) {
      if (!is_real(g, s)) continue;
      const std::optional<Value> grad = p.gradients[k++];
      EXPECT_TRUE(!grad || g.type(*grad).dtype == g.type(s.value).dtype);
    }
  });
}

void check_gradient(const Op& op, Variant variant) {
  for_each_case(op, [&](std::size_t which) {
    Problem p;
    if (!make_problem(p, op, which, f64, variant)) return;
    ASSERT_TRUE(verify(p.builder.graph).empty()) << p.builder.graph.str();
    Graph forward = p.builder.graph;
    forward.outputs = p.results;
    MovedNodes moved;
    forward = prune(forward, &moved);

    Values values = inputs(p, 7);
    Values all = values;
    evaluate(p.builder.graph, all);
    // sum over results of seed . result
    const auto loss = [&](const Values& at) {
      Values v;
      for (const Examples::Source& s : p.sources)
        if (const std::optional<NodeId> to = moved[s.value.node.value]) v[{*to, 0}] = at.at(s.value);
      evaluate(forward, v);
      double total = 0;
      std::size_t k = 0;
      for (Value r : forward.outputs) {
        const Type& t = forward.type(r);
        if (!is_float(t.dtype)) continue;
        const Buffer& seed = values.at(p.seeds[k++]);
        for_each_valid(forward, t, [&](i64 i) { total += seed.at(i) * v.at(r).at(i); });
      }
      return total;
    };

    std::size_t k = 0;
    for (const Examples::Source& s : p.sources) {
      if (!is_real(p.builder.graph, s)) continue;
      const std::optional<Value> gradient = p.gradients[k++];
      if (!gradient && op.no_gradient) continue;
      const Type& t = p.builder.graph.type(s.value);
      ASSERT_TRUE(!gradient || p.builder.graph.type(*gradient) == t);
      std::vector<std::pair<double, double>> pairs;  // ours, measured
      for_each_valid(p.builder.graph, t, [&](i64 i) {
        Buffer& x = values[s.value];
        const double was = x.at(i), h = 1e-5;
        x.set(i, was + h);
        const double up = loss(values);
        x.set(i, was - h);
        const double down = loss(values);
        x.set(i, was);
        pairs.push_back({gradient ? all.at(*gradient).at(i) : 0, (up - down) / (2 * h)});
      });
      double scale = 1e-3;
      for (const auto& [ours, measured] : pairs) scale = std::max(scale, std::abs(measured));
      for (const auto& [ours, measured] : pairs)
        EXPECT_LE(std::abs(ours - measured), 1e-6 * std::max(std::abs(measured), 0.05 * scale))
            << "gradient " << ours << ", by differences " << measured;
    }
  });
}

TEST_P(EveryOp, GradientIsThatOfCentralDifferences) { check_gradient(*GetParam(), Variant::plain); }
TEST_P(EveryOp, GradientHoldsForSizeOne) { check_gradient(*GetParam(), Variant::single); }
TEST_P(EveryOp, GradientHoldsForLargerSizes) { check_gradient(*GetParam(), Variant::larger); }
TEST_P(EveryOp, GradientHoldsForAValueUsedTwice) { check_gradient(*GetParam(), Variant::tied); }

TEST_P(EveryOp, SinglePrecisionIsCloseToDouble) {
  for_each_case(*GetParam(), [](std::size_t which) {
    Problem single, twice;
    make_problem(single, *GetParam(), which, f32);
    make_problem(twice, *GetParam(), which, f64);
    Values a = inputs(single, 11), b = inputs(twice, 11);
    evaluate(single.builder.graph, a);
    evaluate(twice.builder.graph, b, {.reference = true});
    const auto compare = [&](Value in_f32, Value in_f64) {
      const Graph& g = twice.builder.graph;
      const Type& t = g.type(in_f64);
      ASSERT_EQ(single.builder.graph.type(in_f32).dims, t.dims);
      const double scale = largest(g, t, b.at(in_f64));
      for_each_valid(g, t, [&](i64 i) {
        EXPECT_LE(std::abs(a.at(in_f32).at(i) - b.at(in_f64).at(i)), 1e-5 * scale) << g.str(in_f64);
      });
    };
    for (std::size_t i = 0; i < twice.results.size(); ++i) compare(single.results[i], twice.results[i]);
    for (std::size_t i = 0; i < twice.gradients.size(); ++i) {
      ASSERT_EQ(bool(single.gradients[i]), bool(twice.gradients[i]));
      if (twice.gradients[i]) compare(*single.gradients[i], *twice.gradients[i]);
    }
  });
}

std::vector<const Op*> computed_ops() {
  std::vector<const Op*> ops;
  for (const Op* op : all_ops())
    if (!op->collective) ops.push_back(op);
  return ops;
}

INSTANTIATE_TEST_SUITE_P(Ops, EveryOp, testing::ValuesIn(computed_ops()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace stretto
