// States of an optimizer in bf16: what is rounded up and what down is the same under every layout.
#include <gtest/gtest.h>

#include "support/message.h"
#include "support/small_models.h"

namespace stretto {
namespace {

// Every element has a gradient of its own, which no layout changes: only the first row of the batch has one.
Model bowls(i64 rows) {
  return [=](Trace& t) {
    const Dim batch = t.batch("batch", rows), in{"in", 12}, out{"out", 20}, label = Dim{"label", 10}.padded(16);
    const Tensor c = t.input("c", {batch, in, out}), d = t.input("d", {batch});
    const Tensor w = t.param("w", {in, out}), b = t.param("b", {out, label});
    return ratio_of(sum(c * square(w), {batch, in, out}) + sum(d * sum(square(b), {out, label}), batch), t.constant(1));
  };
}

Batch first_row_only(i64 rows) {
  std::vector<float> c(rows * 240, 0), d(rows, 0);
  for (int i = 0; i < 240; ++i) c[i] = 0.1f * float(i % 17 + 1);
  d[0] = 0.7f;
  return {{"c", Array::of<float>(c, {rows, 12, 20})}, {"d", Array::of<float>(d, {rows})}};
}

struct States {
  u64 parameters = 0;
  std::vector<std::vector<std::byte>> states;
  bool operator==(const States&) const = default;
};
States states_of(const Trainer& t) {
  States s{.parameters = t.parameters_hash()};
  for (const CompiledParam& p : t.compiled().params)
    for (const std::string& state : t.compiled().optimizer.state) s.states.push_back(t.state(p.name, state).bytes);
  return s;
}

Optimizer in_bf16(Optimizer o) {
  o.state_dtype = bf16;
  return o;
}

Compiled with_bf16_states(const Optimizer& o, DType dtype, const Parallel& p) {
  return compile(bowls(4), in_bf16(o), {.microbatches = 1, .seed = 3, .dtype = dtype}, p);
}

const std::vector<Parallel> state_layouts{
    {},
    {.names = {.data = 2}},
    {.names = {.data = 2, .zero = 1}},
    {.names = {.data = 4, .zero = 2}},
    {.names = {.data = 2, .zero = 3}},
    {.mesh = {{"x", 2}}, .layout = {{"in", "x"}}},
    {.mesh = {{"x", 2}}, .layout = {{"out", "x"}}},
    {.mesh = {{"x", 2}}, .layout = {{"label", "x"}}},
    {.mesh = {{"x", 2}, {"y", 2}}, .layout = {{"in", "y"}, {"out", "x"}}},
    {.mesh = {{"x", 2}}, .names = {.data = 2, .zero = 1}, .layout = {{"out", "x"}}},
    {.mesh = {{"x", 2}}, .names = {.data = 2, .zero = 3}, .layout = {{"in", "x"}}},
    {.mesh = {{"x", 4}}, .names = {.data = 2, .zero = 3}, .layout = {{"out", "x"}}},
};

TEST(StatesInBf16, DoNotDependOnTheLayout) {
  const Batch batch = first_row_only(4);
  for (const DType dtype : {f32, bf16})
    for (const Optimizer& o : {adamw({.lr = 1e-2}), lion(), sgd({.momentum = 0.9})}) {
      std::optional<States> serial;
      for (const Parallel& p : state_layouts) {
        Trainer t(with_bf16_states(o, dtype, p));
        for (int i = 0; i < 5; ++i) t.step(batch);
        if (!serial) serial = states_of(t);
        EXPECT_EQ(states_of(t), *serial) << o.name << " " << name_of(dtype) << " " << t.compiled().parallel.mesh.str();
      }
    }
}

// States are bf16 values, and the update has seen them so; on average they are those of a run that does not round.
TEST(StatesInBf16, AreRoundedAndNearThoseOfF32) {
  const Batch batch = first_row_only(4);
  Trainer narrow(with_bf16_states(adamw(), f32, {})), wide(compile(bowls(4), adamw(), {.seed = 3}));
  for (int i = 0; i < 30; ++i) narrow.step(batch), wide.step(batch);
  EXPECT_NE(narrow.parameters_hash(), wide.parameters_hash());
  for (const char* state : {"m", "v"}) {
    const std::vector<double> a = narrow.state("w", state).doubles(), b = wide.state("w", state).doubles();
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i], f32_of_bf16(bf16_of(float(a[i]))));
      EXPECT_NEAR(a[i], b[i], 0.4 * std::abs(b[i]));
      sum += (a[i] - b[i]) / b[i];
    }
    EXPECT_LE(std::abs(sum) / 240, 2e-3) << state;
  }
}

TEST(StatesInBf16, TakeHalfTheMemory) {
  const auto bytes = [](DType dtype, DType state) {
    Optimizer o = adamw();
    o.state_dtype = state;
    const Compiled c = compile(make_model(tiny("gpt2"), 4), o, {.dtype = dtype});
    return c.program->actors[ActorId(0)].bytes[Arena::state];
  };
  EXPECT_EQ(2 * bytes(f32, bf16), bytes(f32, f32));
  EXPECT_EQ(3 * bytes(bf16, bf16), 2 * bytes(bf16, f32));  // the masters stay f32
}

TEST(StatesInBf16, GoOnWithTheSameBits) {
  const Batch batch = first_row_only(4);
  Trainer through(with_bf16_states(adamw(), bf16, {}));
  for (int i = 0; i < 6; ++i) through.step(batch);
  Trainer first(with_bf16_states(adamw(), bf16, state_layouts[10]));
  for (int i = 0; i < 3; ++i) first.step(batch);
  Trainer next(with_bf16_states(adamw(), bf16, state_layouts[8]));
  for (const CompiledParam& p : first.compiled().params) {
    next.set_parameter(p.name, first.parameter(p.name));
    for (const char* state : {"m", "v"}) next.set_state(p.name, state, first.state(p.name, state));
  }
  next.set_step(3);
  for (int i = 0; i < 3; ++i) next.step(batch);
  EXPECT_EQ(states_of(next), states_of(through));
}

TEST(StatesInBf16, AreNotForF64) {
  EXPECT_EQ(refusal_of([] { with_bf16_states(adamw(), f64, {}); }),
            "[optimizer] states in bf16 and a run in f64; hint: leave one of the two out");
}

}  // namespace
}  // namespace stretto
