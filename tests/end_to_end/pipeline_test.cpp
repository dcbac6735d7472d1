// Pipelines give the bits of the serial run.
#include <gtest/gtest.h>

#include "stretto/schedule/builders.h"
#include "support/small_models.h"

namespace stretto {
namespace {

// A skip connection over two boundaries and a weight tied across stages.
Model skipping() {
  return [](Trace& t) {
    const Dim batch = t.batch("batch", 120), in{"in", 6}, hidden{"hidden", 16}, out{"out", 3};
    const Tensor x = t.input("x", {batch, in}), y = t.input("y", {batch, out});
    const Tensor first =
        boundary(gelu(contract(x, t.param("up", {in, hidden}, {.init = fan_in(in)}), in) + t.bias("up.bias", hidden)));
    const Dim mid = hidden.like("mid");
    const Tensor w = t.param("w", {hidden, mid}, {.init = fan_in(hidden)});
    Tensor h = first;
    for (int i = 0; i < 6; ++i) h = boundary(h + tanh(rename(contract(h, w, hidden), mid, hidden)));
    const Tensor guess = contract(h + first, t.param("down", {hidden, out}, {.init = fan_in(hidden)}), hidden);
    t.metric("guess", mean(guess, {batch, out}), Accumulate::mean);
    return mean_of(square(guess - y));
  };
}

struct Outcome {
  u64 parameters = 0;
  std::vector<double> losses;
  double evaluation = 0;
  bool operator==(const Outcome&) const = default;
};

Outcome train(const Model& model, i64 vocab, int microbatches, const Parallel& parallel) {
  Trainer trainer(compile(model, adamw({.lr = 1e-2}), {.microbatches = microbatches, .clip = 0.5}, parallel));
  const Batch batch = random_batch(trainer.compiled(), vocab);
  Outcome o;
  for (int i = 0; i < 5; ++i) o.losses.push_back(trainer.step(batch).loss);
  o.parameters = trainer.parameters_hash();
  o.evaluation = trainer.evaluate(batch).loss;
  return o;
}

void expect_bit_equal(const Model& model, i64 vocab) {
  struct Size {
    int actors, chunks, microbatches;
  };
  std::map<int, Outcome> serial;
  int compared = 0;
  for (const Size s : {Size{1, 1, 4},
                       {2, 1, 4},
                       {3, 1, 5},
                       {4, 1, 4},
                       {4, 1, 8},
                       {4, 2, 8},
                       {2, 2, 12},
                       {3, 2, 10},
                       {4, 2, 1},
                       {8, 1, 3}}) {
    if (!serial.contains(s.microbatches)) serial[s.microbatches] = train(model, vocab, s.microbatches, {});
    for (const BuilderEntry& b : schedule_builders()) {
      if (!b.ascending || (s.chunks == 2) != (b.default_chunks == 2)) continue;
      Parallel parallel{.mesh = {{"pipe", s.actors}}, .schedule = std::string(b.name), .chunks = s.chunks};
      try {
        build_schedule(b.name, {.actors = s.actors, .microbatches = s.microbatches, .chunks = s.chunks});
      } catch (const Error&) {
        continue;  // not a size of this schedule
      }
      const Outcome o = train(model, vocab, s.microbatches, parallel);
      EXPECT_EQ(o, serial[s.microbatches]) << b.name << " on " << s.actors << " actors, " << s.chunks << " chunks, "
                                           << s.microbatches << " microbatches";
      ++compared;
    }
  }
  EXPECT_GE(compared, 40);
}

TEST(Pipeline, SkipsAndTiedWeightsAreBitEqualToSerial) { expect_bit_equal(skipping(), 1); }
TEST(Pipeline, Gpt2IsBitEqualToSerial) {
  ModelConfig c = tiny("gpt2", 4);
  c.dropout = 0.1;
  expect_bit_equal(make_model(c, 120, 8), 50);
}
TEST(Pipeline, LlamaIsBitEqualToSerial) {
  ModelConfig c = tiny("llama", 4);
  c.kv_heads = 2;
  expect_bit_equal(make_model(c, 120, 8), 50);
}

std::string refusal(const Parallel& p) {
  try {
    compile(skipping(), sgd(), {.microbatches = 4}, p);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Pipeline, WhatCannotRunIsRefused) {
  EXPECT_EQ(refusal({.mesh = {{"pipe", 12}}}),
            "[stages] 12 stages are asked for and the model has 8 pieces between its boundaries; hint: use at most 8 "
            "stages, more layers, or more boundaries");
  EXPECT_EQ(refusal({.mesh = {{"data", 2}}}),
            "[mesh] axis 'data' has size 2, but only 'pipe' can be split so far; hint: use data=1");
  EXPECT_EQ(refusal({.mesh = {{"pipe", 2}}, .schedule = "chimera"}),
            "[schedule] 'chimera' holds every stage twice, which training cannot do yet; hint: use a schedule with one "
            "pipe, e.g. zb-v");
  EXPECT_EQ(refusal({.mesh = {{"pipe", 2}}, .stages = {3, 3}}),
            "[stages] the stages take 6 pieces and the model has 8; hint: make the numbers add up to 8");
}

TEST(Pipeline, ErrorInOneActorStopsAllAndIsRethrown) {
  Trainer trainer(compile(make_model(tiny("gpt2"), 4), sgd(), {.microbatches = 2}, {.mesh = {{"pipe", 3}}}));
  Batch batch = random_batch(trainer.compiled(), 50);
  std::vector<std::int32_t> targets(batch.at("targets").as<std::int32_t>().begin(),
                                    batch.at("targets").as<std::int32_t>().end());
  targets.back() = 99;  // found by the last actor, in its second microbatch
  batch["targets"] = Array::of<std::int32_t>(targets, batch.at("targets").sizes);
  try {
    trainer.step(batch);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("actor 2"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("microbatch 1"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace stretto
