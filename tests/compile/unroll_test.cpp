#include "stretto/compile/inner/unroll.h"

#include <gmock/gmock.h>

#include "stretto/base/philox.h"
#include "stretto/ops/all.h"
#include "stretto/ops/input.h"
#include "stretto/ops/param.h"
#include "support/evaluate.h"
#include "support/message.h"

namespace stretto {
namespace {
using testing::ElementsAre;
using testing::HasSubstr;

const Dim batch{"batch", 2}, seq{"seq", 4}, features{"model", 3}, out_dim{"out", 2};

std::vector<std::string> names_of_nodes(const Graph& g) {
  std::vector<std::string> all;
  for (const Node& n : g.nodes) all.push_back(fmt::format("{} {}", n.op->name, n.piece));
  return all;
}

// What the outputs are, for inputs and parameters that only their names decide.
std::vector<std::vector<double>> values(const Graph& g) {
  test::Values all;
  for (NodeId id : ids_until<NodeId>(g.nodes.size())) {
    if (!g.node(id).op->given()) continue;
    test::Buffer b(g, g.node(id).results[0]);
    const PhiloxKey key = philox_key(7, g.node(id).attrs.name());
    for (i64 i = 0; i < b.count(); ++i) b.set(i, 2 * uniform_at(key, u64(i)) - 1);
    all[{id, 0}] = std::move(b);
  }
  test::evaluate(g, all);
  std::vector<std::vector<double>> outputs;
  for (Value v : g.outputs) {
    outputs.emplace_back();
    for (i64 i = 0; i < all.at(v).count(); ++i) outputs.back().push_back(all.at(v).at(i));
  }
  return outputs;
}

struct Sequences {
  Builder b;
  Tensor x = input(b, "x", f64, {batch, seq, features}), w = param(b, "w", f64, {features, out_dim});
};

TEST(Unroll, RowsGoThroughOncePerSegment) {
  Sequences s;
  gelu(contract(s.x, s.w, features));
  Unroll unrolled(s.b.graph, "seq", {3, 1});
  const Graph g = std::move(unrolled).graph();
  EXPECT_THAT(names_of_nodes(g), ElementsAre("input 0", "param 0", "slice 0", "rename 0", "contract 0", "slice 1",
                                             "rename 1", "contract 1", "gelu 0", "gelu 1"));
  EXPECT_TRUE(verify(g).empty());
}

TEST(Unroll, SumsAreMadeOfSegments) {
  Sequences s;
  const Tensor y = contract(s.x, s.w, features), all = sum(y, y.dims());
  Unroll unrolled(s.b.graph, "seq", {2, 2});
  const Value sum_of_all = unrolled(all.value);
  const Graph g = std::move(unrolled).graph();
  EXPECT_EQ(g.node(sum_of_all).op->name, std::string_view("add"));
  EXPECT_EQ(g.node(sum_of_all).piece, 1);
}

TEST(Unroll, PiecesAreThereOncePerSegment) {
  Sequences s;
  const Tensor y = square(boundary(contract(s.x, s.w, features)));
  Unroll unrolled(s.b.graph, "seq", {2, 2});
  unrolled(y.value);
  std::vector<int> pieces;
  for (const Node& n : std::move(unrolled).graph().nodes)
    if (n.op->name == "square") pieces.push_back(n.piece);
  EXPECT_THAT(pieces, ElementsAre(2, 3));
}

// Positions and the places that dropout draws for are those in the whole sequence.
TEST(Unroll, SegmentsKnowWhereTheyBegin) {
  Sequences s;
  const Dim head{"head", 2}, seq_k = seq.whole("seq_k");
  const Tensor h = rotary(contract(s.x, rename(s.w, out_dim, head), features), seq, head);
  const Tensor k = rename(h, seq, seq_k);
  const Tensor a = dropout(attention(h, k, k * 0.5, {.query = seq, .key = seq_k, .head = head}), 0.25);
  const Tensor loss = sum(a * cast(iota(s.b, seq), f64), a.dims());
  const std::vector<Value> asked{a.value, loss.value};
  Graph whole = s.b.graph;
  whole.outputs = asked;
  for (const std::vector<i64>& sizes : {std::vector<i64>{2, 2}, {1, 3}, {1, 1, 1, 1}}) {
    Unroll unrolled(s.b.graph, "seq", sizes);
    std::vector<Value> found;
    for (Value v : asked) found.push_back(unrolled(v));
    Graph cut = std::move(unrolled).graph();
    cut.outputs = found;
    ASSERT_TRUE(verify(cut).empty());
    const auto expected = values(whole), got = values(cut);
    for (std::size_t k = 0; k < asked.size(); ++k) {
      ASSERT_EQ(expected[k].size(), got[k].size());
      for (std::size_t i = 0; i < got[k].size(); ++i) EXPECT_NEAR(expected[k][i], got[k][i], 1e-13);
    }
  }
}

std::string why(const Builder& b, const std::vector<i64>& sizes = {2, 2}) {
  return refusal_of([&] { Unroll(b.graph, "seq", sizes); });
}

TEST(Unroll, WhatMixesPositionsIsRefusedByItsName) {
  {
    Sequences s;
    softmax(contract(s.x, s.w, features), seq);
    EXPECT_THAT(why(s.b), HasSubstr("[segments] softmax{batch=2 seq=4 out=2} mixes positions; hint: "));
  }
  {
    Sequences s;
    const Dim seq_k = seq.whole("seq_k");
    const Tensor h = contract(s.x, s.w, features), k = rename(h, seq, seq_k);
    attention(h, k, k, {.query = seq, .key = seq_k, .head = out_dim, .causal = false});
    EXPECT_THAT(why(s.b), HasSubstr("[segments] attention:0{batch=2 seq=4 out=2} mixes positions"));
  }
  {
    Sequences s;
    const Tensor h = contract(s.x, s.w, features);
    h - mean(h, seq);
    EXPECT_THAT(why(s.b), HasSubstr("[segments] sub{batch=2 seq=4 out=2} reads at every position what was made"));
  }
}

TEST(Unroll, SizesThatDoNotAddUp) {
  Sequences s;
  const auto refused = [&](const SegmentSizes& x, std::string_view dim = "seq") {
    return refusal_of([&] { sizes_of(x, s.b.graph, dim); });
  };
  EXPECT_THAT(sizes_of({.count = 2}, s.b.graph, "seq"), ElementsAre(2, 2));
  EXPECT_THAT(sizes_of({.sizes = {3, 1}}, s.b.graph, "seq"), ElementsAre(3, 1));
  EXPECT_EQ(
      refused({.count = 3}),
      "[segments] sequences of 4 tokens cannot be cut into 3 equal segments; hint: use 2, 4, or say how long each "
      "is: segments = [2, 2]");
  EXPECT_EQ(refused({.sizes = {3, 2}}),
            "[segments] they are of 5 tokens together, and sequences of 4; hint: sizes add up to the sequence's");
  EXPECT_EQ(refused({.sizes = {4, 0}}), "[segments] a segment has 0 tokens; hint: each has at least one");
  EXPECT_EQ(refused({.count = 2}, "time"),
            "[segments] the model has no dim 'time' that could be cut; hint: leave train.segments out");
}

}  // namespace
}  // namespace stretto
