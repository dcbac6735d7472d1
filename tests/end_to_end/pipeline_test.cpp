// Pipelines give the bits of the serial run.
#include <gtest/gtest.h>

#include "stretto/schedule/builders.h"
#include "support/in_processes.h"
#include "support/message.h"
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
  const auto compiled = [&](const Parallel& p) {
    return compile(model, adamw({.lr = 1e-2}), {.microbatches = microbatches, .clip = 0.5}, p);
  };
  if (test::in_processes()) {
    test::same_in_processes(parallel, compiled,
                            [&](const Trainer& t, int) { return random_batch(t.compiled(), vocab); });
    return {};
  }
  Trainer trainer(compiled(parallel));
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
      if (!b.ascending || b.name.starts_with("seq-") || (s.chunks == 2) != (b.default_chunks() == 2)) continue;
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
// Slices of the vocabulary in pieces of their own, which the embedding of the first piece has, too.
TEST(Pipeline, AHeadInPartsIsBitEqualToSerial) {
  ModelConfig c = tiny("gpt2", 1);
  c.head_parts = 5;
  expect_bit_equal(make_model(c, 120, 8), 50);
}
// Penalties are sums over layers: something of every stage goes on to the last one.
ModelConfig with_experts(int layers) {
  ModelConfig c = tiny("mixtral", layers);
  c.kv_heads = 2, c.ff = 24, c.experts = 4, c.balance = 0.05, c.router_z = 0.01;
  return c;
}
TEST(Pipeline, MixtralIsBitEqualToSerial) { expect_bit_equal(make_model(with_experts(4), 120, 8), 50); }

// One or more choices of recompute on a few schedules of each kind of placement.
void expect_bit_equal_recomputed(const Model& model, i64 vocab) {
  using enum Recompute;
  const Outcome serial = train(model, vocab, 4, {});
  EXPECT_EQ(train(model, vocab, 4, {.recompute = {full}}), serial) << "one actor";
  EXPECT_EQ(train(model, vocab, 4, {.recompute = {selective}}), serial) << "one actor";
  struct Case {
    const char* schedule;
    int actors;
    std::vector<Recompute> recompute;
  };
  for (const Case& c : std::vector<Case>{{"1f1b", 2, {full}},
                                         {"1f1b", 3, {selective}},
                                         {"gpipe", 4, {selective, full, none, full}},
                                         {"zb-h1", 3, {full}},
                                         {"zb-h1", 2, {selective, full}},
                                         {"zb-v", 2, {full}},
                                         {"zb-v", 2, {selective}},
                                         {"zb-v", 2, {none, full, selective, full}},
                                         {"interleaved-1f1b", 2, {full}}}) {
    const Parallel p{.mesh = {{"pipe", c.actors}}, .schedule = c.schedule, .recompute = c.recompute};
    EXPECT_EQ(train(model, vocab, 4, p), serial)
        << c.schedule << " on " << c.actors << " actors, " << name_of(c.recompute[0]);
  }
}

TEST(Recompute, SkipsAndTiedWeightsAreBitEqualToSerial) { expect_bit_equal_recomputed(skipping(), 1); }
TEST(Recompute, Gpt2IsBitEqualToSerial) {
  ModelConfig c = tiny("gpt2", 3);
  c.dropout = 0.1;
  expect_bit_equal_recomputed(make_model(c, 24, 8), 50);
}
TEST(Recompute, Gpt2WithAttentionDropoutIsBitEqualToSerial) {
  ModelConfig c = tiny("gpt2", 3);
  c.dropout = c.attention_dropout = c.embedding_dropout = 0.1;
  c.tied = false;
  expect_bit_equal_recomputed(make_model(c, 24, 8), 50);
}
TEST(Recompute, LlamaIsBitEqualToSerial) {
  ModelConfig c = tiny("llama", 3);
  c.kv_heads = 2;
  c.qk_norm = true;
  expect_bit_equal_recomputed(make_model(c, 24, 8), 50);
}

TEST(Recompute, MixtralIsBitEqualToSerial) {
  ModelConfig c = with_experts(3);
  c.dropout = 0.1, c.balance_pooled = true;
  expect_bit_equal_recomputed(make_model(c, 24, 8), 50);
}

// R may stand in the row, anywhere between F and its backward: here up to two actions before I.
Schedule early_recompute(const Request& r) {
  Schedule s = build_schedule("zb-h1", r);
  for (Row& row : s.rows) {
    const auto place_of_r = [&](std::size_t i) {
      const Action forward{.phase = Phase::F, .stage = row[i].stage, .microbatch = row[i].microbatch};
      const std::size_t f = std::size_t(std::find(row.begin(), row.end(), forward) - row.begin());
      return std::max(f + 1, i < 2 ? 0 : i - 2);
    };
    Row with;
    for (std::size_t at = 0; at < row.size(); ++at) {
      for (std::size_t i = at; i < row.size(); ++i)
        if (row[i].phase == Phase::I && place_of_r(i) == at) with.R(row[i].stage.value, int(row[i].microbatch.value));
      with.push_back(row[at]);
    }
    row = with;
  }
  return s;
}

TEST(Recompute, OwnActionIsBitEqualToSerial) {
  const Model model = make_model(tiny("gpt2", 3), 24, 8);
  const Outcome serial = train(model, 50, 4, {});
  for (Recompute how : {Recompute::none, Recompute::full, Recompute::layer, Recompute::selective}) {
    const Parallel p{.mesh = {{"pipe", 2}}, .schedule = early_recompute, .recompute = {how}};
    EXPECT_EQ(train(model, 50, 4, p), serial) << name_of(how);
  }
}

TEST(Recompute, OneChoicePerStageOrOneForAll) {
  try {
    compile(skipping(), sgd(), {.microbatches = 4},
            {.mesh = {{"pipe", 3}}, .recompute = {Recompute::full, Recompute::none}});
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(),
                 "[recompute] 2 choices are given and there are 3 stages; hint: give one for all stages, or one per "
                 "stage");
  }
}

std::string refusal(const Parallel& p) {
  return refusal_of([&] { compile(skipping(), sgd(), {.microbatches = 4}, p); });
}

TEST(Pipeline, WhatCannotRunIsRefused) {
  EXPECT_EQ(refusal({.mesh = {{"pipe", 12}}}),
            "[stages] 12 stages are asked for and the model has 8 pieces between its boundaries; hint: use at most 8 "
            "stages, more layers, or more boundaries");
  EXPECT_EQ(refusal({.mesh = {{"data", 2}}}),
            "[mesh] no dim and no storage uses axis 'data': its 2 ranks would repeat the same work; hint: map a dim to "
            "it, or leave it out");
  EXPECT_EQ(refusal({.mesh = {{"pipe", 2}}, .schedule = "seq-1f1b"}),
            "[schedule] 'seq-1f1b' is for sequences that are cut into segments, and these are not; hint: say into how "
            "many, e.g. train.segments = 4, or use 1f1b");
  EXPECT_EQ(refusal({.mesh = {{"pipe", 2}}, .stages = {3, 3}}),
            "[stages] the stages take 6 pieces and the model has 8; hint: make the numbers add up to 8");
}

TEST(Pipeline, ErrorInOneActorStopsAllAndIsRethrown) {
  Compiled compiled = compile(make_model(tiny("gpt2"), 4), sgd(), {.microbatches = 2}, {.mesh = {{"pipe", 3}}});
  compiled.ids.clear();  // as if the model had computed them
  Trainer trainer(compiled);
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
