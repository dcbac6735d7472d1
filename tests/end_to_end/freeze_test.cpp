// Parameters that are frozen: no gradient, no state, no update, and the bits of the serial run under every schedule.
#include <gtest/gtest.h>

#include "stretto/schedule/builders.h"
#include "support/message.h"
#include "support/small_models.h"

namespace stretto {
namespace {

using Names = std::vector<std::string>;

struct Tuned {
  u64 parameters = 0;
  std::vector<double> numbers;  // losses and norms
  bool operator==(const Tuned&) const = default;
};

Compiled compiled(const std::string& family, const Names& frozen, const Parallel& parallel = {}, DType dtype = f32) {
  return compile(make_model(tiny(family, 4), 8), adamw({.lr = 1e-2}),
                 {.microbatches = 4, .dtype = dtype, .frozen = frozen, .clip = 0.5}, parallel);
}

Tuned tuned(Compiled c) {
  Trainer t(std::move(c));
  const Batch batch = random_batch(t.compiled(), 50);
  Tuned all;
  for (int i = 0; i < 2; ++i) {
    const StepResult r = t.step(batch);
    all.numbers.insert(all.numbers.end(), {r.loss, r.grad_norm});
  }
  all.parameters = t.parameters_hash();
  return all;
}

// The beginning, the end, all but one in the middle, all but the norms, one in the middle.
const std::vector<Names> frozen_names{
    {"wte", "wpe", "h.0", "h.1"}, {"h.3", "ln_f"}, {"*", "!h.2.up"}, {"*", "!*.gain"}, {"h.1.*"}};

TEST(Freeze, EveryScheduleHasTheBitsOfTheSerialRun) {
  for (const Names& frozen : frozen_names) {
    const Tuned serial = tuned(compiled("gpt2", frozen));
    for (const char* schedule : {"gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "zb-v", "zb-auto", "looped-bfs"})
      for (const int actors : {2, 4})
        EXPECT_EQ(tuned(compiled("gpt2", frozen, {.mesh = {{"pipe", actors}}, .schedule = schedule})), serial)
            << schedule << " on " << actors << ", without " << frozen[0];
    EXPECT_EQ(tuned(compiled("gpt2", frozen, {.mesh = {{"pipe", 2}}, .recompute = {Recompute::full}})), serial);
  }
}

TEST(Freeze, EveryLayoutHasTheNumbersOfTheSerialRun) {
  for (const Names& frozen : frozen_names) {
    const Tuned serial = tuned(compiled("gpt2", frozen, {}, f64));
    for (const ParallelNames& names :
         {ParallelNames{.data = 2}, ParallelNames{.data = 2, .zero = 1}, ParallelNames{.data = 2, .zero = 2},
          ParallelNames{.data = 2, .zero = 3}, ParallelNames{.tensor = 2}, ParallelNames{.tensor = 2, .sequence = true},
          ParallelNames{.context = 2}, ParallelNames{.depth = 2}})
      for (const int actors : {1, 2}) {
        const Tuned all = tuned(compiled("gpt2", frozen, {.mesh = {{"pipe", actors}}, .names = names}, f64));
        for (std::size_t i = 0; i < serial.numbers.size(); ++i)
          EXPECT_NEAR(all.numbers[i], serial.numbers[i], 1e-9 * std::abs(serial.numbers[i]))
              << "zero " << names.zero << " tensor " << names.tensor << ", without " << frozen[0];
      }
  }
}

TEST(Freeze, WhatIsFrozenStaysAndTakesNoMemory) {
  Trainer t(compiled("gpt2", {"*", "!h.2.up"}));
  std::map<std::string, std::vector<double>> before;
  for (const CompiledParam& p : t.compiled().params) before[p.name] = t.parameter(p.name).doubles();
  t.step(random_batch(t.compiled(), 50));
  for (const auto& [name, numbers] : before)
    EXPECT_EQ(t.parameter(name).doubles() == numbers, !name.starts_with("h.2.up")) << name;
  EXPECT_EQ(refusal_of([&] { (void)t.gradient("wte"); }),
            "[gradient] parameter 'wte' is not trained; hint: it is frozen: by finetune, or by trainable = false");
  EXPECT_THROW((void)t.state("wte", "m"), Error);
  const auto bytes = [](const Compiled& c, Arena a) { return c.program->actors[ActorId(0)].bytes[a]; };
  const Compiled all = compiled("gpt2", {});
  EXPECT_EQ(bytes(t.compiled(), Arena::params) + bytes(t.compiled(), Arena::frozen), bytes(all, Arena::params));
  EXPECT_LT(bytes(t.compiled(), Arena::gradients) * 10, bytes(all, Arena::gradients));
  EXPECT_LT(bytes(t.compiled(), Arena::state) * 10, bytes(all, Arena::state));
}

TEST(Freeze, RanksReadOneCopy) {
  const Names most{"*", "!*.up"};
  Trainer t(compiled("gpt2", most, {.mesh = {{"pipe", 2}}, .names = {.data = 2, .tensor = 2}}));
  const auto at = [&](int rank, Arena a) { return t.engine().worker(rank).arenas()[a]; };
  for (const int first : {0, 4}) {
    for (const int tensor : {0, 1}) EXPECT_EQ(at(first + tensor, Arena::frozen), at(first + 2 + tensor, Arena::frozen));
    EXPECT_NE(at(first, Arena::frozen), at(first + 1, Arena::frozen));
    EXPECT_NE(at(first, Arena::params), at(first + 2, Arena::params));
  }
  EXPECT_NE(at(0, Arena::frozen), at(4, Arena::frozen));

  // What is set is there for all of them, at once and in evaluation.
  Trainer serial(compiled("gpt2", most));
  const Batch batch = random_batch(t.compiled(), 50);
  for (Trainer* x : {&t, &serial}) {
    const Array before = x->parameter("h.0.qkv");
    std::vector<float> twice;
    for (const float v : before.as<float>()) twice.push_back(2 * v);
    x->step(batch);
    x->set_parameter("h.0.qkv", Array::of<float>(twice, before.sizes));
  }
  EXPECT_NEAR(t.evaluate(batch).loss, serial.evaluate(batch).loss, 1e-5);
  EXPECT_NEAR(t.step(batch).loss, serial.step(batch).loss, 1e-5);
}

// What is kept in bf16 is what it is rounded to, whatever the run computes in; nothing of it is kept a second time.
TEST(Freeze, AnotherTypeForWhatIsFrozen) {
  const Names most{"*", "!*.up"};
  const auto kept = [&](DType run, std::optional<DType> frozen, const Parallel& parallel = {}) {
    return compile(make_model(tiny("llama", 2), 8), adamw({.lr = 1e-2}),
                   {.microbatches = 4, .dtype = run, .frozen = most, .frozen_dtype = frozen}, parallel);
  };
  const auto bytes = [](const Compiled& c, Arena a) { return c.program->actors[ActorId(0)].bytes[a]; };
  EXPECT_LT(bytes(kept(f32, bf16), Arena::frozen), 0.52 * bytes(kept(f32, {}), Arena::frozen));
  EXPECT_EQ(bytes(kept(bf16, {}), Arena::frozen), bytes(kept(f32, bf16), Arena::frozen));
  EXPECT_EQ(bytes(kept(bf16, f32), Arena::frozen), bytes(kept(f32, {}), Arena::frozen));

  // An f32 run with weights that bf16 holds has the same numbers, however they are kept.
  Trainer narrow(kept(f32, bf16)), wide(kept(f32, {}));
  for (const CompiledParam& p : wide.compiled().params) wide.set_parameter(p.name, narrow.parameter(p.name));
  const Batch batch = random_batch(wide.compiled(), 50);
  for (int i = 0; i < 2; ++i) {
    const StepResult a = narrow.step(batch), b = wide.step(batch);
    EXPECT_EQ(a.loss, b.loss);
    EXPECT_EQ(a.grad_norm, b.grad_norm);
  }
  EXPECT_EQ(narrow.parameters_hash(), wide.parameters_hash());
  EXPECT_EQ(tuned(kept(f32, bf16)), tuned(kept(f32, bf16, {.mesh = {{"pipe", 2}}, .schedule = "zb-h1"})));
  EXPECT_EQ(tuned(kept(bf16, f32)), tuned(kept(bf16, f32, {.recompute = {Recompute::full}})));
}

TEST(Freeze, NamesAreRight) {
  EXPECT_EQ(refusal_of([] {
              compiled("gpt2", {"wte", "h.0.qvk"});
            }),
            "[freeze] no parameter is called 'h.0.qvk'; hint: did you mean 'h.0.qkv'?");
  EXPECT_EQ(refusal_of([] {
              compiled("gpt2", {"*", "!layers.*"});
            }).substr(0, 45),
            "[freeze] no parameter is called 'layers.*'; h");
  EXPECT_EQ(refusal_of([] { compiled("gpt2", {"*"}); }),
            "[freeze] all of the 52 parameters are frozen; hint: take some back: freeze = [\"*\", \"!ln_f.gain\"]");
}

TEST(Freeze, PatternsAreReadInOrder) {
  EXPECT_TRUE(is_frozen({"h.1"}, "h.1.qkv"));
  EXPECT_FALSE(is_frozen({"h.1"}, "h.11.qkv"));
  EXPECT_TRUE(is_frozen({"h.*.qkv"}, "h.11.qkv"));
  EXPECT_FALSE(is_frozen({"h.*.qkv"}, "h.11.qkv.bias"));
  EXPECT_TRUE(is_frozen({"*", "!h.1", "*.bias"}, "h.1.qkv.bias"));
  EXPECT_FALSE(is_frozen({"*", "!h.1", "*.bias"}, "h.1.qkv"));
}

}  // namespace
}  // namespace stretto
