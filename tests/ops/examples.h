// An op's examples as graphs of their own, with values to put in.
//
//   for_each_case(op, [&](std::size_t which) {
//     if (const auto e = example_of(op, which, f64, Variant::larger)) evaluate(e->graph, values);
//   });
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <vector>

#include "stretto/ir/op.h"
#include "support/evaluate.h"

namespace stretto::test {

enum class Variant {
  plain,
  single,  // every dim has size 1
  larger,  // every dim is larger
  tied,    // operands of one type are one value, used several times
};

struct Example {
  Graph graph;
  std::vector<Examples::Source> sources;  // parameters, too
  std::vector<Value> results;
};
// The nodes of one case. None where the variant does not apply: the parts of a concat must add up.
std::optional<Example> example_of(const Op&, std::size_t which, DType, Variant = Variant::plain);

// Padding holds NaN: nothing may depend on it.
Buffer random_buffer(const Graph&, const Type&, const Examples::Source& range, std::mt19937&);

template <class F>
void for_each_case(const Op& op, const F& f) {
  Examples e;
  op.examples(e);
  for (std::size_t i = 0; i < e.cases.size(); ++i) {
    SCOPED_TRACE(fmt::format("{}, example {}", op.name, i));
    f(i);
  }
}

template <class F>
void for_each_valid(const Graph& g, const Type& t, const F& f) {
  const View v = contiguous_view(g, t);
  i64 i = 0;
  for_each_index(v.sizes, [&](const std::vector<i64>& index) {
    if (!is_padding(v, index)) f(i);
    ++i;
  });
}

}  // namespace stretto::test
