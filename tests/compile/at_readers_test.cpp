#include "stretto/compile/inner/at_readers.h"

#include <gmock/gmock.h>

#include "stretto/ops/add.h"
#include "stretto/ops/boundary.h"
#include "stretto/ops/input.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/neg.h"
#include "stretto/ops/param.h"

namespace stretto {
namespace {
using testing::ElementsAre;

const Dim four_dim{"four", 4};

std::vector<std::string> nodes(const Graph& g) {
  std::vector<std::string> all;
  for (const Node& n : g.nodes) all.push_back(fmt::format("{} {}", n.op->name, n.piece));
  return all;
}

// -w is asked for first, and read in the second piece only, or in both.
struct Negated {
  Builder b;
  Tensor x = input(b, "x", f32, four_dim), w = param(b, "w", f32, four_dim), minus = -w;
  Tensor first = x + x;
};

TEST(AtReaders, WhatIsMadeOfParametersMovesToItsReader) {
  Negated m;
  const Tensor y = boundary(m.first) * m.minus;
  AtReaders moved(m.b.graph);
  ASSERT_TRUE(moved.needed());
  const Value out = moved(y.value), minus = moved(m.minus.value);
  const Graph g = std::move(moved).graph();
  EXPECT_THAT(nodes(g), ElementsAre("input 0", "param 0", "add 0", "boundary 1", "neg 1", "mul 1"));
  EXPECT_EQ(g.node(out).op->name, std::string_view("mul"));
  EXPECT_EQ(g.node(out).operands[1], minus);
  EXPECT_TRUE(verify(g).empty());
}

TEST(AtReaders, EveryReaderMakesItForItself) {
  Negated m;
  boundary(m.first * m.minus) * m.minus;
  AtReaders moved(m.b.graph);
  ASSERT_TRUE(moved.needed());
  EXPECT_THAT(nodes(std::move(moved).graph()),
              ElementsAre("input 0", "param 0", "add 0", "neg 0", "mul 0", "boundary 1", "neg 1", "mul 1"));
}

TEST(AtReaders, OnePieceStaysAsItIs) {
  Negated m;
  const Tensor y = m.first * m.minus;
  AtReaders moved(m.b.graph);
  EXPECT_FALSE(moved.needed());
  EXPECT_EQ(moved(y.value), y.value);
}

}  // namespace
}  // namespace stretto
