#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "stretto/fuse/fuse.h"
#include "stretto/ops/add.h"
#include "stretto/ops/contract.h"
#include "stretto/ops/dropout.h"
#include "stretto/ops/exp.h"
#include "stretto/ops/fused.h"
#include "stretto/ops/gelu.h"
#include "stretto/ops/input.h"
#include "stretto/ops/layer_norm.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/rename.h"
#include "stretto/ops/stack.h"
#include "stretto/ops/sum.h"

namespace stretto {
namespace {

const Dim a{"a", 4}, b{"b", 6};

int count(const Calls& c, const Op& op) {
  int n = 0;
  for (const KernelCall& k : c.calls) n += c.graph.node(k.node).op == &op;
  return n;
}

Calls fuse_as(Builder& builder, std::initializer_list<Tensor> outputs, const ResultMemories& results) {
  for (const Tensor& t : outputs) builder.graph.outputs.push_back(t.value);
  return fuse(builder.graph, results);
}
Calls fuse_plain(Builder& builder, std::initializer_list<Tensor> outputs) {
  return fuse_as(builder, outputs, ResultMemories(outputs.size()));
}

const BodyBuffer* argument(const Calls& c, ArgumentId a) {
  for (const BodyBuffer& buffer : c.buffers)
    if (buffer.argument() && *buffer.argument() == a) return &buffer;
  return nullptr;
}
const BodyBuffer* result(const Calls& c, ResultId r) {
  for (const BodyBuffer& buffer : c.buffers)
    if (buffer.result() && *buffer.result() == r) return &buffer;
  return nullptr;
}

TEST(Fuse, BiasAndGeluAreOnePassWithTwoResults) {
  Builder g;
  const Tensor x = input(g, "0", f32, {a, b}), bias = input(g, "1", f32, {b});
  const Tensor u = x + bias;
  const Calls c = fuse_plain(g, {u, gelu(u)});
  ASSERT_EQ(c.calls.size(), 1u);
  EXPECT_EQ(count(c, fused_op), 1);
  EXPECT_EQ(c.calls[CallId(0)].out.size(), 2u);
}

TEST(Fuse, ChainThatLeavesTheGroupAndComesBackIsNotOneGroup) {
  Builder g;
  const Tensor x = input(g, "0", f32, {a, b});
  const Tensor e = exp(x);
  const Tensor y = e * sum(e, {b});  // softmax by hand: the sum lies between the two
  const Calls c = fuse_plain(g, {y});
  EXPECT_EQ(c.calls.size(), 3u);
  EXPECT_EQ(count(c, fused_op), 0);
}

TEST(Fuse, ProductsOfSumsJoinIntoOneGroup) {
  Builder g;
  const Tensor x = input(g, "0", f32, {a, b}), y = input(g, "1", f32, {a, b});
  const Calls c = fuse_plain(g, {(x + y) * (x + 2.0)});
  ASSERT_EQ(c.calls.size(), 1u);
}

TEST(Fuse, ContractionIsAccumulatedInPlace) {
  Builder g;
  const Dim k{"k", 3};
  const Tensor w = contract(input(g, "0", f32, {k, a}), input(g, "1", f32, {k, b}), k);
  const Calls c = fuse_as(g, {w}, {{.accumulate = true}});
  ASSERT_EQ(c.calls.size(), 1u);
  EXPECT_TRUE(c.calls[CallId(0)].accumulate);
}

TEST(Fuse, AccumulatedArgumentIsAddedByACopy) {
  Builder g;
  const Tensor x = input(g, "0", f32, {a}), y = input(g, "1", f32, {a});
  const Tensor s = x + y;
  const Calls c = fuse_as(g, {s, s * 2.0}, {{.accumulate = true}, {}});
  EXPECT_EQ(count(c, copy_op), 1);
  for (const KernelCall& k : c.calls) EXPECT_EQ(k.accumulate, c.graph.node(k.node).op == &copy_op);
}

TEST(Fuse, StackedValuesAreMadeInPlaceThroughRenames) {
  Builder g;
  const Dim c1{"c", 4}, two{"two", 2};
  const Tensor x = input(g, "0", f32, {a, b}), y = input(g, "1", f32, {c1, b});
  const Tensor s = stack({exp(x), rename(exp(y), c1, a)}, two);
  const Calls c = fuse_plain(g, {s});
  for (const KernelCall& k : c.calls) {
    ASSERT_EQ(k.out.size(), 1u);
    EXPECT_TRUE(c.buffers[*k.out[0].buffer].result());
  }
  EXPECT_EQ(c.buffers.size(), 3u);
}

TEST(Fuse, ArgumentsKeepTheirNumbers) {
  Builder g;
  const Tensor x = input(g, "0", f32, {a});
  const Tensor e = exp(x);
  const Tensor y = input(g, "1", f32, {a}), z = input(g, "2", f32, {a});
  const Calls c = fuse_plain(g, {e * z + y});
  std::vector<std::string> names;
  for (const Node& n : c.graph.nodes)
    if (n.op == &input_op) names.push_back(n.attrs.as<InputAttrs>().name);
  EXPECT_EQ(names, (std::vector<std::string>{"0", "1", "2"}));
}

TEST(Fuse, ResultInAnArgumentsMemoryIsWrittenAfterItsLastReader) {
  Builder g;
  const Tensor m = input(g, "0", f32, {a, b});
  const Tensor fresh = m * 2.0;
  const Tensor late = sum(m, {a});  // reads the old m after `fresh` could have been written
  const Calls c = fuse_as(g, {fresh, late}, {{.same_memory = ArgumentId(0)}, {}});
  EXPECT_GE(result(c, ResultId(0))->touched->first, argument(c, ArgumentId(0))->touched->last);
}

TEST(Fuse, ResultThatIsTheArgumentItLiesInNeedsNoCall) {
  Builder g;
  const Tensor x = input(g, "0", f32, {a}), y = input(g, "1", f32, {a});
  const Calls c = fuse_as(g, {x, x + y}, {{.same_memory = ArgumentId(0)}, {.same_memory = ArgumentId(1)}});
  EXPECT_EQ(c.calls.size(), 1u);
  EXPECT_EQ(count(c, add_op), 1);
  EXPECT_EQ(result(c, ResultId(0)), nullptr);
}

TEST(Fuse, ResultThatNobodyMakesIsACopy) {
  Builder g;
  const Dim c1{"c", 4};
  const Tensor x = input(g, "0", f32, {a}), e = exp(x);
  const Calls c = fuse_plain(g, {x, rename(e, a, c1), e, e});  // an argument, a view, the same value twice
  EXPECT_EQ(count(c, copy_op), 3);
  for (ResultId r : ids_until<ResultId>(4)) EXPECT_TRUE(result(c, r) && result(c, r)->touched) << r.value;
}

TEST(Fuse, ArgumentThatNobodyReadsIsTouchedByNoCall) {
  Builder g;
  input(g, "0", f32, {a});
  const Tensor y = input(g, "1", f32, {a});
  const Calls c = fuse_plain(g, {exp(y)});
  EXPECT_FALSE(argument(c, ArgumentId(0))->touched);
  EXPECT_TRUE(argument(c, ArgumentId(1))->touched);
}

TEST(Fuse, ResultOfACallThatNobodyReadsHasNoBuffer) {
  Builder g;
  const Tensor x = input(g, "0", f32, {a, b});
  const Calls c = fuse_plain(g, {layer_norm(x, input(g, "1", f32, {b}), input(g, "2", f32, {b}), b)});
  int unread = 0;
  for (const KernelCall& k : c.calls) {
    ASSERT_EQ(k.out.size(), c.graph.node(k.node).results.size());
    for (const Ref& r : k.out) unread += !r.buffer;
  }
  EXPECT_GT(unread, 0);  // the statistics, which only backward asks for
}

TEST(Fuse, RandomNodesKeepTheNumbersOfTheirKeys) {
  Builder g;
  const Tensor x = input(g, "0", f32, {a, b});
  const Tensor first = dropout(x, 0.5, "one"), second = dropout(exp(x), 0.25, "two");
  g.graph.nodes[first.value.node.value].attrs = dropout_op.rekeyed(DropoutAttrs{.rate = 0.5}, {.number = 7});
  g.graph.nodes[second.value.node.value].attrs = dropout_op.rekeyed(DropoutAttrs{.rate = 0.25}, {.number = 2});
  const Calls c = fuse_plain(g, {second, first * 2.0});
  std::vector<std::pair<double, KeyId>> keys;
  for (const KernelCall& k : c.calls)
    if (k.key) keys.push_back({c.graph.node(k.node).attrs.as<DropoutAttrs>().rate, *k.key});
  std::ranges::sort(keys);
  EXPECT_EQ(keys, (std::vector<std::pair<double, KeyId>>{{0.25, KeyId(2)}, {0.5, KeyId(7)}}));
}

// The kernel holds operands, constants and steps at once: longer chains are cut.
TEST(Fuse, GroupsFitTheKernelsRegisters) {
  Builder g;
  Tensor y = input(g, "0", f32, {a});
  for (int i = 0; i < 3 * fused_registers; ++i) y = exp(y);
  const Calls c = fuse_plain(g, {y});
  EXPECT_EQ(c.calls.size(), 4u);
  for (const KernelCall& k : c.calls)
    EXPECT_LE(k.in.size() + c.graph.node(k.node).attrs.as<FusedAttrs>().steps.size(), std::size_t(fused_registers));
}

// Random pointwise graphs with reductions in between: whatever is grouped, every value is written before it is read.
TEST(Fuse, RandomGraphsStaySound) {
  EXPECT_TRUE(rc::check([] {
    Builder g;
    std::vector<Tensor> wide{input(g, "0", f32, {a, b}), input(g, "1", f32, {a, b})};
    std::vector<Tensor> narrow{input(g, "2", f32, {b})};
    const auto pick = [](const std::vector<Tensor>& from) {
      return from[std::size_t(*rc::gen::inRange(0, int(from.size())))];
    };
    const int n = *rc::gen::inRange(1, 40);
    for (int i = 0; i < n; ++i) switch (*rc::gen::inRange(0, 6)) {
        case 0:
          wide.push_back(pick(wide) + pick(wide));
          break;
        case 1:
          wide.push_back(pick(wide) * pick(narrow));
          break;
        case 2:
          wide.push_back(exp(pick(wide)));
          break;
        case 3:
          narrow.push_back(sum(pick(wide), {a}));
          break;
        case 4:
          narrow.push_back(pick(narrow) * 3.0);
          break;
        case 5:
          wide.push_back(pick(wide) + 1.0);
          break;
      }
    g.graph.outputs = {wide.back().value, narrow.back().value};
    if (g.graph.node(wide.back().value).op == &input_op || g.graph.node(narrow.back().value).op == &input_op) return;
    const Calls c = fuse(g.graph, ResultMemories(2));
    RC_ASSERT(verify(c).empty());
    RC_ASSERT(verify(c.graph).empty());
  }));
}

}  // namespace
}  // namespace stretto
