// What must be equal to the last bit: schedules of one layout, repeated runs, replicas, any timing.
#include <cstring>

#include "layouts/compare.h"
#include "stretto/train/logical.h"

namespace stretto {
namespace {

const Setting bits_setting{.config = small("gpt2"), .training = {.microbatches = 4, .seed = 3, .clip = 0.5}};

Compiled compiled(const Parallel& p) {
  return compile(make_model(bits_setting.config, bits_setting.rows), adamw({.lr = 3e-3}), bits_setting.training, p);
}

u64 trained(Trainer& t, int steps = 8) {
  for (int i = 1; i <= steps; ++i) t.step(step_batch(t.compiled(), bits_setting.config.vocab, i));
  return t.parameters_hash();
}
u64 trained(const Parallel& p, const RunOptions& run = {}, int steps = 8) {
  Trainer t(compiled(p), run);
  return trained(t, steps);
}

TEST(LayoutBits, SchedulesOfOneLayout) {
  for (const ParallelNames& names :
       {ParallelNames{.data = 2, .tensor = 2, .sequence = true}, ParallelNames{.data = 2, .zero = 2}}) {
    const u64 one = trained({.names = names});
    for (const char* schedule : {"gpipe", "1f1b", "zb-h1", "interleaved-1f1b", "zb-v"})
      EXPECT_EQ(one, trained({.mesh = {{"pipe", 2}}, .names = names, .schedule = schedule})) << schedule;
    EXPECT_EQ(one, trained({.names = names}));
  }
}

// Every rank sleeps before one in four of its instructions, each seed at others.
TEST(LayoutBits, AnyTiming) {
  for (const int zero : {0, 1, 3}) {
    const Compiled c = compiled({.mesh = {{"pipe", 2}}, .names = {.data = 2, .zero = zero}, .schedule = "zb-v"});
    Trainer calm(c);
    const u64 expected = trained(calm, 2);
    for (u64 seed = 1; seed <= 17; ++seed) {
      Trainer t(c, {.jitter = 2e-4, .jitter_seed = seed});
      ASSERT_EQ(expected, trained(t, 2)) << "zero " << zero << ", seed " << seed;
    }
  }
}

// How long parameters stay gathered, and what is made again from them, changes no number.
TEST(LayoutBits, Resharding) {
  const ParallelNames names{.data = 2, .zero = 3};
  const u64 expected = trained({.names = names}, {}, 4);
  EXPECT_EQ(expected, trained({.names = names, .reshard = Reshard::step}, {}, 4));
  for (const char* schedule : {"1f1b", "zb-h1", "interleaved-1f1b"})
    for (Reshard reshard : {Reshard::microbatch, Reshard::step})
      EXPECT_EQ(expected,
                trained({.mesh = {{"pipe", 2}}, .names = names, .reshard = reshard, .schedule = schedule}, {}, 4))
          << schedule << " " << name_of(reshard);
  for (Recompute again : {Recompute::full, Recompute::layer, Recompute::selective})
    EXPECT_EQ(expected, trained({.names = names, .recompute = {again}}, {}, 4)) << name_of(again);
}

// Whoever holds a part of a parameter holds the same bits of it.
TEST(LayoutBits, Replicas) {
  for (int zero : {0, 1, 3}) {
    Trainer t(compiled({.mesh = {{"pipe", 2}}, .names = {.data = 2, .tensor = 2, .sequence = true, .zero = zero}}));
    trained(t);
    int held = 0;
    for (int rank = 0; rank < t.engine().ranks(); ++rank) {
      const Worker& w = t.engine().worker(rank);
      for (ParamId i : t.compiled().params.ids()) {
        const CompiledParam& p = t.compiled().params[i];
        const std::optional<Slot> at = w.program().place_of(i);
        if (!at) continue;
        const Array all = t.parameter(p.name);
        Array with_mine = all;
        read_logical(p, stored_part(t.compiled(), i, w.coordinates()), reading(w, at->arena, at->offset), with_mine);
        EXPECT_EQ(all.bytes, with_mine.bytes) << p.name << " on " << w.str();
        ++held;
      }
    }
    EXPECT_GT(held, 40);
  }
}

// Values go in and out as if they were on one device.
TEST(LayoutBits, StateMovesBetweenLayouts) {
  const std::vector<Parallel> all{{},
                                  {.names = {.data = 2, .tensor = 4, .zero = 3}},
                                  {.mesh = {{"pipe", 2}}, .names = {.data = 2, .zero = 1}},
                                  {.names = {.tensor = 2, .context = 2, .depth = 2}}};
  Trainer first(compiled(all[1]));
  trained(first, 3);
  for (const Parallel& p : all) {
    Trainer next(compiled(p));
    for (const CompiledParam& param : first.compiled().params) {
      next.set_parameter(param.name, first.parameter(param.name));
      EXPECT_EQ(next.parameter(param.name).bytes, first.parameter(param.name).bytes);
      for (const std::string& state : first.compiled().optimizer.state) {
        next.set_state(param.name, state, first.state(param.name, state));
        EXPECT_EQ(next.state(param.name, state).bytes, first.state(param.name, state).bytes);
      }
    }
    EXPECT_EQ(first.parameters_hash(), next.parameters_hash());
    next.set_step(first.steps_done());
    const Batch batch = step_batch(next.compiled(), bits_setting.config.vocab, 4);
    const double loss = next.evaluate(batch).loss;
    EXPECT_NEAR(loss, first.evaluate(batch).loss, 1e-5);
    EXPECT_EQ(first.parameters_hash(), next.parameters_hash());
  }
}

// Parameters begin as functions of their names and logical indices.
TEST(LayoutBits, FirstValues) {
  const u64 serial = Trainer(compiled({})).parameters_hash();
  for (int zero : {0, 3})
    EXPECT_EQ(serial, Trainer(compiled({.names = {.data = 2, .tensor = 2, .zero = zero}})).parameters_hash());
  EXPECT_EQ(serial, Trainer(compiled({.names = {.context = 2, .depth = 4}})).parameters_hash());
}

// A loss that is not a number on one rank stops the update of all.
TEST(LayoutBits, NonfiniteOnOneRank) {
  for (int zero : {0, 1, 3}) {
    Trainer t(compile(
                  [](Trace& t) {
                    const Dim batch = t.batch("batch", 4), in{"in", 3};
                    return mean_of(square(t.input("x", {batch, in}) * t.param("w", {in}, {.init = ones})));
                  },
                  sgd({.lr = 0.1}), {},
                  {.mesh = {{"data", 4}},
                   .layout = {{"batch", "data"}},
                   .storage = {.state = zero > 0 ? Axes("data") : Axes(), .params = zero > 2 ? Axes("data") : Axes()}}),
              test::ranks_of_this_run(4));
    std::vector<float> x(12, 1);
    const u64 before = t.parameters_hash();
    EXPECT_TRUE(t.step({{"x", Array::of<float>(x, {4, 3})}}).updated);
    const u64 after = t.parameters_hash();
    EXPECT_NE(before, after);
    x[7] = NAN;
    EXPECT_FALSE(t.step({{"x", Array::of<float>(x, {4, 3})}}).updated);
    EXPECT_EQ(after, t.parameters_hash());
  }
}

}  // namespace
}  // namespace stretto
