// Layouts that cannot work are refused with the reason and what to do.
#include <gmock/gmock.h>

#include "shard/traced.h"
#include "stretto/ops/all.h"
#include "stretto/shard/layout_of.h"
#include "stretto/shard/shard.h"
#include "support/message.h"

namespace stretto {
namespace {
using test::traced;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

StepGraph gpt2() {
  static const StepGraph s =
      traced(make_model({.family = "gpt2", .layers = 1, .width = 32, .context = 16, .vocab = 50}, 8)).step;
  return s;
}

std::string refusal(const StepGraph& s, const Mesh& mesh, const Layout& layout, const ShardOptions& o = {}) {
  try {
    shard(s, mesh, layout, o);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), Error::Kind::input);
    return e.what();
  }
  return "not refused";
}

TEST(Refused, UnknownDim) {
  const std::string text = refusal(gpt2(), {{"tensor", 2}}, {{"head", "tensor"}, {"hedas", "tensor"}});
  EXPECT_THAT(text, HasSubstr("there is no dim 'hedas'"));
  EXPECT_THAT(text, HasSubstr("did you mean 'heads'? the model's dims are batch, seq"));
}

TEST(Refused, UnknownAxis) {
  const std::string text =
      refusal(gpt2(), {{"pipe", 2}, {"tensor", 2}}, {{"heads", "tenser"}, {"ff", "pipe"}, {"vocab", "tensor"}});
  EXPECT_THAT(
      text,
      HasSubstr(
          "[layout of 'heads'] there is no axis 'tenser'; hint: did you mean 'tensor'? the mesh's axes are tensor"));
  EXPECT_THAT(text, HasSubstr("[layout of 'ff'] 'pipe' is the pipeline's axis: dims cannot be split over it"));
}

TEST(Refused, AConsequenceOfAMisspeltNameIsNotSaid) {
  EXPECT_THAT(refusal(gpt2(), {{"rows", 2}}, {{"btch", "rows"}}),
              AllOf(HasSubstr("there is no dim 'btch'"), Not(HasSubstr("uses axis"))));
  EXPECT_THAT(refusal(gpt2(), {{"rows", 2}}, {{"batch", "row"}}),
              AllOf(HasSubstr("there is no axis 'row'"), Not(HasSubstr("uses axis"))));
}

TEST(Refused, AnAxisOrADimTwice) {
  EXPECT_THAT(refusal(gpt2(), {{"tensor", 2}}, {{"ff", {"tensor", "tensor"}}}),
              HasSubstr("dim 'ff' lists axis 'tensor' twice"));
  EXPECT_THAT(refusal(gpt2(), {{"a", 2}, {"b", 2}}, {{"ff", "a"}, {"ff", "b"}}),
              HasSubstr("dim 'ff' is mapped twice, to 'a' and to 'b'"));
}

TEST(Refused, ASizeThatDoesNotDivide) {
  const std::string text = refusal(gpt2(), {{"tensor", 4}}, {{"vocab", "tensor"}});
  EXPECT_THAT(text, HasSubstr("dim 'vocab' has size 50, which 4 ranks (tensor) do not divide"));
  EXPECT_THAT(text, HasSubstr("use a size that 4 divides, another number of ranks, or pad it (model.pad_vocab = 4"));
  EXPECT_THAT(text, Not(HasSubstr("uses axis")));  // that would be a consequence, not a mistake of its own
  EXPECT_THAT(refusal(gpt2(), {{"a", 3}}, {{"heads", "a"}}),
              AllOf(HasSubstr("dim 'heads' has size 4"), Not(HasSubstr("heads_q"))))
      << "it is like heads";
}

TEST(Refused, AWholeDim) {
  EXPECT_THAT(
      refusal(gpt2(), {{"context", 2}}, {{"seq_k", "context"}}),
      AllOf(
          HasSubstr("dim 'seq_k' is never split, and is mapped to 'context'; hint: map 'seq' or a dim like it instead"),
          Not(HasSubstr("uses axis"))));
}

TEST(Refused, TwoDimsOfATensorOnOneAxis) {
  const std::string text = refusal(gpt2(), {{"tensor", 2}}, {{"model", "tensor"}, {"ff", "tensor"}});
  EXPECT_THAT(text,
              HasSubstr("dims 'model' and 'ff' of h.0.up{model=32 ff=128} (param in 'h.0') both lie on axis 'tensor'"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "dims 'model' and 'ff' of h.0/contract{batch=8 seq=16 ff=128} (contract in 'h.0') both lie on axis 'tensor'; "
          "hint: map one of them elsewhere or rename it around this op"));
  std::size_t said = 0;
  for (std::size_t at = 0; (at = text.find("'model' and 'ff'", at)) != text.npos; ++at) ++said;
  EXPECT_EQ(said, 2u) << text;
}

// No tensor carries both names, but the product runs over both.
TEST(Refused, TwoDimsOfAnOpOnOneAxis) {
  const StepGraph s = traced([](Trace& t) {
                        const Dim batch = t.batch("batch", 4), in{"in", 4}, mid{"mid", 4}, out{"out", 4};
                        const Scope scope(t, "net");
                        return mean_of(contract(contract(t.input("x", {batch, in}), t.param("v", {in, mid}), in),
                                                t.param("w", {mid, out}), mid));
                      }).step;
  EXPECT_THAT(refusal(s, {{"a", 2}}, {{"batch", "a"}, {"mid", "a"}}),
              HasSubstr("'batch' and 'mid' of net/contract{batch=4 mid=4}"));
  EXPECT_THAT(refusal(s, {{"a", 2}}, {{"in", "a"}, {"out", "a"}}), HasSubstr("not refused"));
}

TEST(Refused, ASerialDim) {
  const std::string text =
      refusal(traced(make_model({.family = "llama", .layers = 1, .width = 32, .context = 16, .vocab = 48}, 8)).step,
              {{"tensor", 2}}, {{"head", "tensor"}});
  EXPECT_THAT(text, HasSubstr("dim 'head' is split over 'tensor' and must be whole here: h.0/rotary{"));
  EXPECT_THAT(text, HasSubstr("(rotary in 'h.0'); hint: rename it before this op"));
  EXPECT_THAT(refusal(gpt2(), {{"a", 3}}, {{"three", "a"}}),
              HasSubstr("dim 'three' is split over 'a' and must be whole here: h.0/unstack"));
}

TEST(Refused, AnUnusedAxis) {
  EXPECT_THAT(refusal(gpt2(), {{"data", 2}, {"idle", 3}}, {{"batch", "data"}}),
              HasSubstr("[mesh] no dim and no storage uses axis 'idle': its 3 ranks would repeat the same work; hint: "
                        "map a dim to it, or leave it out"));
  EXPECT_THAT(refusal(gpt2(), {{"data", 2}}, {}, {.storage = {.state = "data"}}), HasSubstr("not refused"));
  EXPECT_THAT(refusal(gpt2(), {{"data", 2}, {"one", 1}}, {{"batch", "data"}}), HasSubstr("not refused"));
}

TEST(Refused, StorageThatDoesNotNest) {
  EXPECT_THAT(
      refusal(gpt2(), {{"a", 2}, {"b", 2}}, {{"batch", {"a", "b"}}}, {.storage = {.state = "a", .params = "b"}}),
      HasSubstr("[storage] parameters are cut over 'b' and the optimizer state over 'a'"));
  EXPECT_THAT(refusal(gpt2(), {{"a", 2}}, {{"batch", "a"}}, {.storage = {.state = "z"}}),
              HasSubstr("[storage] there is no axis 'z'"));
}

TEST(Refused, AllReasonsAtOnce) {
  try {
    shard(gpt2(), {{"a", 2}, {"b", 4}}, {{"nothing", "a"}, {"vocab", "b"}, {"ff", "c"}});
    FAIL();
  } catch (const Error& e) {
    EXPECT_GE(e.faults().size(), 3u);  // dim, size, axis
  }
}

// What a forgotten rename would lead to is refused while the model is written.
TEST(Refused, WhileTheModelIsWritten) {
  const auto text = [](const std::function<void(Trace&, Tensor, Tensor)>& f) -> std::string {
    Trace t;
    const Dim a{"a", 4}, b{"b", 3}, c{"c", 5};
    return refusal_of([&] { f(t, t.input("x", {a, b}), t.input("y", {a, c})); });
  };
  EXPECT_THAT(text([](Trace&, Tensor x, Tensor y) { x + y; }),
              HasSubstr("has dim 'c' that x{a=4 b=3} lacks, and the other way round"));
  EXPECT_THAT(text([](Trace&, Tensor x, Tensor y) { contract(x, y, {}); }), HasSubstr("no dim to sum over"));
  EXPECT_THAT(text([](Trace&, Tensor x, Tensor) { rename(x, {"b", 3}, {"c", 5}); }), HasSubstr("the sizes differ"));
  EXPECT_THAT(text([](Trace&, Tensor x, Tensor) { rename(x, {"b", 3}, {"a", 4}); }), HasSubstr("sizes differ"));
  EXPECT_THAT(text([](Trace& t, Tensor, Tensor) {
                t.input("z", {{"a", 4}, {"a", 4}});
              }),
              HasSubstr("would have dim 'a' twice"));
}

// The axis that heads take over is not the last one of the positions': two gathers instead of an exchange.
TEST(Warned, AnOrderThatGathers) {
  const Mesh mesh{{"c", 2}, {"t", 2}};
  const Layout good{{"seq", {"t", "c"}}, {"heads_q", "c"}, {"seq_q", "t"}};
  EXPECT_THAT(shard(gpt2(), mesh, good).warnings, testing::IsEmpty());
  const Layout bad{{"seq", {"c", "t"}}, {"heads_q", "c"}, {"seq_q", "t"}};
  const std::vector<Fault> warnings = shard(gpt2(), mesh, bad).warnings;
  ASSERT_FALSE(warnings.empty());
  EXPECT_THAT(warnings[0].str(),
              HasSubstr("h.0/rename seq -> seq_q, heads -> heads_q: axis 't' is gathered and cut again"));
  EXPECT_THAT(warnings[0].str(), HasSubstr("bytes per rank"));
  EXPECT_THAT(warnings[0].hint, HasSubstr("the last one of its list"));
}

TEST(ShortNames, AreRefusedWhereTheyMeanNothing) {
  const auto text = [](const ParallelNames& n) -> std::string {
    return refusal_of([&] { layout_of(n, gpt2().graph.dims); });
  };
  EXPECT_THAT(text({.data = 0}), HasSubstr("data is 0"));
  EXPECT_THAT(text({.zero = 1}), HasSubstr("zero = 1 cuts over the data axis, and data is 1"));
  EXPECT_THAT(text({.data = 2, .zero = 4}), HasSubstr("zero is 4"));
  EXPECT_THAT(text({.sequence = true}), HasSubstr("tensor is 1"));
  EXPECT_THAT(text({.exchange = true}), HasSubstr("context is 1"));
}

TEST(ShortNames, BecomeLayouts) {
  const auto text = [](const ParallelNames& n) {
    const NamedLayout r = layout_of(n, gpt2().graph.dims);
    return r.mesh.str() + ": " + r.layout.str();
  };
  EXPECT_EQ(text({}), "serial: ");
  EXPECT_EQ(text({.data = 2, .tensor = 4}), "data=2 tensor=4: batch->data ff->tensor vocab->tensor heads->tensor");
  EXPECT_EQ(text({.tensor = 2, .context = 2, .sequence = true}),
            "context=2 tensor=2: ff->tensor vocab->tensor heads->tensor seq->context seq_r->context,tensor");
  EXPECT_EQ(text({.context = 2, .exchange = true}), "context=2: seq->context heads_q->context seq_q->");
  EXPECT_EQ(text({.data = 2, .replicas = 3}), "replica=3 data=2: batch->replica,data");
  EXPECT_EQ(text({.data = 2, .depth = 2}), "data=2 depth=2: batch->data,depth");
}

}  // namespace
}  // namespace stretto
