#include "stretto/simulate/prices.h"

#include <gtest/gtest.h>

#include "stretto/compile/compile.h"
#include "stretto/cost/device.h"
#include "stretto/models/family.h"
#include "stretto/simulate/held.h"
#include "stretto/simulate/step_time.h"

namespace stretto {
namespace {

Compiled small(Parallel p = {}, DType dtype = bf16) {
  return compile(make_model({.layers = 2, .width = 256, .heads = 4, .context = 128, .vocab = 512, .tied = false}, 8),
                 adamw(), {.microbatches = 4, .dtype = dtype}, p);
}
Cluster on(const char* device, Stack stack = {}) { return cluster_of(read_device(device), stack); }

double seconds_of(const Compiled& c, const Stack& stack) {
  return step_time(*c.program, on("a100-80g", stack)).seconds;
}

TEST(Prices, WhatIsSpentAddsUpToTheStep) {
  for (const Parallel& p : {Parallel{}, Parallel{.mesh = {{"pipe", 2}}}, Parallel{.names = {.data = 2, .tensor = 2}},
                            Parallel{.names = {.data = 2, .zero = 3}}}) {
    const Compiled c = small(p);
    const StepTime t = step_time(*c.program, on("a100-80g"));
    EXPECT_NEAR(t.spent.busy() + t.spent.bubble, t.seconds, 1e-9 * t.seconds);
    EXPECT_GT(t.spent.products, 0);
    EXPECT_GT(t.spent.attention, 0);
    EXPECT_GT(t.spent.elements, 0);
    EXPECT_GT(t.spent.update, 0);
  }
}

TEST(Prices, AFactorIsOfEverything) {
  const Compiled c = small({.mesh = {{"pipe", 2}}, .names = {.data = 2}});
  Stack twice;
  twice.factor = 2;
  EXPECT_NEAR(seconds_of(c, twice), 2 * seconds_of(c, {}), 1e-9);
}

TEST(Prices, ALossOfTheStackMovesBytesPerLogit) {
  const Compiled c = small();
  Stack some, more;
  some.logits = 10, more.logits = 30;
  const Cluster a100 = on("a100-80g");
  const double logits = 8.0 * 128 * 512, rate = a100.machine.memory_bandwidth * a100.machine.rates->elements;
  EXPECT_NEAR(seconds_of(c, more) - seconds_of(c, some), 20 * logits / rate, 1e-12);
}

TEST(Prices, AnUpdateOfTheStackMovesBytesInPartsOfTheProgramsOwn) {
  const Compiled c = small();
  Stack twice, thrice;
  twice.update = 2, thrice.update = 3;
  const Cluster a100 = on("a100-80g");
  double params = 0;
  for (const CompiledParam& p : c.params) {
    double size = 1;
    for (const Dim& d : p.dims) size *= double(d.size);
    params += size;
  }
  const double rate = a100.machine.memory_bandwidth * a100.machine.rates->elements;
  const double own = (seconds_of(c, thrice) - seconds_of(c, twice)) * rate / params;
  EXPECT_NEAR(own, 34, 0.5) << "bytes: the gradient is read twice, master and two moments read and written, the "
                               "parameter written";
}

TEST(Prices, SumsThatAreNotHiddenComeAfterAllElse) {
  const Compiled c = small({.names = {.data = 2}});
  Stack shown, hidden;
  shown.hidden.sums = 0;
  hidden.hidden.sums = 1;
  const StepTime a = step_time(*c.program, on("a100-80g", shown)), b = step_time(*c.program, on("a100-80g", hidden));
  EXPECT_NEAR(a.seconds - b.seconds, a.sums, 1e-9);
  EXPECT_EQ(b.exposed, 0);
  shown.gradient_bytes = 2;
  EXPECT_NEAR(step_time(*c.program, on("a100-80g", shown)).sums, a.sums / 2, 1e-9) << "half the bytes";
}

TEST(Prices, NoPhaseOfALayerIsShorterThanTheFloor) {
  const Compiled c = small();
  Stack slow;
  slow.floor = 1;
  // Pieces: embedding, four halves, head. The embedding has no gradient of its inputs.
  const double halves = 4 * (6 * 3 - 1);
  EXPECT_NEAR(seconds_of(c, slow), halves / 2, 0.01 * halves);
}

// Backward of a half layer begins with a gather of its gradient, which weight gradients of the one before go on beside.
Compiled overlapped(Overlap overlap) {
  return small({.names = {.tensor = 2, .sequence = true}, .link = {.bandwidth = 1e9}, .overlap = overlap});
}
int tasks_that_begin_with_a_start(const Program& p) {
  int found = 0;
  for (const Instruction& i : p.actors[ActorId(0)].code)
    if (const Start* s = start_of(i); s && of_an_action(p.task(s->run).part)) found += s->run.calls->from == CallId(0);
  return found;
}

TEST(Prices, ATaskThatBeginsWithAStartedCollectiveIsIssuedToo) {
  const Compiled apart = overlapped(Overlap::calls), whole = overlapped(Overlap::none);
  ASSERT_GT(tasks_that_begin_with_a_start(*apart.program), 0);
  Stack slow;
  slow.floor = 1;
  EXPECT_NEAR(seconds_of(apart, slow), seconds_of(whole, slow), 0.01 * seconds_of(whole, slow));
}

TEST(Prices, FullRecomputeOfAStackMakesAllOfForwardAgain) {
  const Compiled c = small({.recompute = {Recompute::layer}}), none = small();
  Stack whole;
  whole.whole_layers = true;
  const Cluster plain = on("a100-80g"), stacked = on("a100-80g", whole);
  const Priced forward = Prices(*none.program, plain).task(ActorId(0), TaskId(1));
  EXPECT_GT(forward.seconds(), 0);
  double again = 0, ours = 0;
  Prices theirs(*c.program, stacked), own(*c.program, plain);
  for (TaskId t : c.program->step->tasks.ids())
    if (c.program->step->tasks[t].part == Part::R) {
      again += theirs.task(ActorId(0), t).seconds();
      ours += own.task(ActorId(0), t).seconds();
    }
  EXPECT_GT(again, 1.2 * ours) << "the last product of a half layer is not needed";
}

TEST(Prices, ABackwardThatIsOneThingDelaysTheStageBefore) {
  const Compiled c = small({.mesh = {{"pipe", 2}}});
  Stack joined;
  joined.joined_backward = true;
  EXPECT_GT(seconds_of(c, joined), 1.02 * seconds_of(c, {}));
}

TEST(Prices, NarrowProductsAreFasterThanTheRest) {
  const Compiled c = small();
  const Cluster narrow = cluster_of(read_device("h100-sxm"), {}, ProductType::fp8);
  EXPECT_NE(step_time(*c.program, narrow).spent.products, step_time(*c.program, on("h100-sxm")).spent.products);
  EXPECT_EQ(step_time(*c.program, narrow).spent.attention, step_time(*c.program, on("h100-sxm")).spent.attention);
}

TEST(Prices, ProductsOfOneOperandMayBeOne) {
  const Compiled c =
      compile(make_model({.family = "llama", .layers = 2, .width = 256, .heads = 4, .context = 128, .vocab = 512}, 8),
              adamw(), {.microbatches = 4, .dtype = bf16}, {});
  Stack joined;
  joined.joined_products = true;
  DeviceModel d = read_device("h100-sxm");
  const auto products = [&](const Stack& s) { return step_time(*c.program, cluster_of(d, s)).spent.products; };
  EXPECT_LT(products(joined), 0.97 * products({}));
  EXPECT_GT(products(joined), 0.7 * products({})) << "most have an operand of their own";
  d.rates.small = 0;
  EXPECT_EQ(products(joined), products({})) << "where no side is too short";
}

TEST(Prices, WhatIsGatheredForNarrowProductsIsNarrow) {
  Stack wide, narrow;
  wide.hidden.tensor = narrow.hidden.tensor = 0;
  narrow.narrow_gathers = true;
  const auto spent = [](const Compiled& c, const Stack& s, ProductType products) {
    DeviceModel d = read_device("h100-sxm");
    d.inside = {.bandwidth = 1e9, .latency = 0};  // so slow that everything is waited for
    return step_time(*c.program, cluster_of(d, s, products)).spent;
  };
  const Compiled tensor = small({.names = {.tensor = 2, .sequence = true}, .overlap = Overlap::none});
  const double all = spent(tensor, wide, ProductType::fp8).collectives;
  EXPECT_LT(spent(tensor, narrow, ProductType::fp8).collectives, 0.9 * all);
  EXPECT_GT(spent(tensor, narrow, ProductType::fp8).collectives, 0.5 * all) << "sums stay as they are";
  EXPECT_EQ(spent(tensor, narrow, ProductType::as_kept).collectives, all);
  const Compiled data = small({.names = {.data = 2, .zero = 3}});
  EXPECT_LT(spent(data, narrow, ProductType::fp8).gathers, spent(data, wide, ProductType::fp8).gathers);
  EXPECT_EQ(spent(data, narrow, ProductType::as_kept).gathers, spent(data, wide, ProductType::as_kept).gathers);
}

// Rows of experts on ranks of their own, with tensor ranks that hold them alike.
Compiled with_experts() {
  ModelConfig config{.family = "mixtral", .layers = 2, .width = 256, .heads = 4, .context = 128, .vocab = 512};
  config.experts = 8, config.top_k = 2;
  return compile(make_model(config, 8), adamw(), {.microbatches = 4, .dtype = bf16},
                 {.names = {.tensor = 2, .expert = 2, .sequence = true},
                  .overlap = Overlap::none,
                  .expert_rows = ExpertRows::exchange});
}

TEST(Prices, RowsForExpertsAreHiddenAsExchangesAre) {
  const Compiled c = with_experts();
  Stack all, tensor;
  all.hidden.tensor = tensor.hidden.tensor = 1;
  tensor.hidden.exchanges = 0;
  EXPECT_EQ(step_time(*c.program, on("h100-sxm", all)).spent.collectives, 0);
  EXPECT_GT(step_time(*c.program, on("h100-sxm", tensor)).spent.collectives, 0);
}

TEST(Prices, RowsThatTensorRanksHoldAlikeMayBeExchangedInParts) {
  const Compiled c = with_experts();
  DeviceModel d = read_device("h100-sxm");
  d.inside.latency = d.between.latency = 0, d.domain = 2;  // experts' ranks are on two nodes
  Stack whole, cut;
  whole.hidden.tensor = cut.hidden.tensor = 1, whole.hidden.exchanges = cut.hidden.exchanges = 0;
  cut.cut_exchanges = true;
  const auto seconds = [&](const Stack& s) { return step_time(*c.program, cluster_of(d, s)).spent.collectives; };
  EXPECT_LT(seconds(cut), 0.8 * seconds(whole));
  EXPECT_GT(seconds(cut), 0.5 * seconds(whole)) << "what came is gathered";
}

TEST(Held, KeptScoresAndMasksAreCounted) {
  const Compiled c = small();
  Stack kept;
  kept.kept = true, kept.scores_kept = 5;
  const double without = held(*c.program, on("a100-80g"))[0].bytes();
  const double scores = 2.0 * 2 * 4 * 128 * 128 * 5;  // layers, rows, heads, queries, keys, bytes
  EXPECT_EQ(held(*c.program, on("a100-80g", kept))[0].bytes() - without, scores);
  Stack masks;
  masks.masks = 1;
  EXPECT_EQ(held(*c.program, on("a100-80g", masks))[0].bytes() - without, 5.0 * 2 * 128 * 256) << "of five pieces";
  const Compiled again = small({.recompute = {Recompute::layer}});
  EXPECT_EQ(held(*again.program, on("a100-80g", kept))[0].bytes(), held(*again.program, on("a100-80g"))[0].bytes());
}

TEST(Held, ABackwardThatBeginsWithAStartedCollectiveLetsGo) {
  const Compiled apart = overlapped(Overlap::calls), whole = overlapped(Overlap::none);
  ASSERT_GT(tasks_that_begin_with_a_start(*apart.program), 0);
  Stack kept;
  kept.kept = true, kept.scores_kept = 5;
  const auto beside = [&](const Compiled& c) {
    return held(*c.program, on("a100-80g", kept))[0].bytes() - held(*c.program, on("a100-80g"))[0].bytes();
  };
  EXPECT_EQ(beside(apart), beside(whole));
}

TEST(Held, AStackThatMakesLayersAgainKeepsTheirInputsOnly) {
  const Compiled c = small({.recompute = {Recompute::layer}});
  Stack whole;
  whole.whole_layers = true;
  const double between_halves = 2.0 * 2 * 128 * 256 * 2;  // layers, rows, positions, width, bytes
  EXPECT_EQ(held(*c.program, on("a100-80g"))[0].bytes() - held(*c.program, on("a100-80g", whole))[0].bytes(),
            between_halves);
  const Compiled none = small();
  EXPECT_EQ(held(*none.program, on("a100-80g", whole))[0].bytes(), held(*none.program, on("a100-80g"))[0].bytes());
}

TEST(Held, EveryOtherProductIsKept) {
  const Compiled c = small({.recompute = {Recompute::selective}});
  Stack products;
  products.selective = Stack::Selective::products;
  const PerArena<u64>& bytes = c.program->actors[ActorId(0)].bytes;
  // Per position: of a layer half of queries, keys, values and what is added, attention's result, half of the MLP's two
  // products, a layer's input; half of the embedding's result; logits and their gradient.
  const double layer = (3 + 1) * 256 / 2 + 256 + (4 + 1) * 256 / 2 + 256, positions = 2 * 128;
  const double counted = positions * 2 * (2 * layer + 256 / 2 + 2 * 512);
  const Held h = held(*c.program, on("a100-80g", products))[0];
  EXPECT_EQ(h.activations, double(bytes[Arena::inputs] + bytes[Arena::results]) + counted);
  products.memory.logits = 8;
  EXPECT_EQ(held(*c.program, on("a100-80g", products))[0].activations - h.activations, 8 * positions * 512);
}

TEST(Held, MemoryOfAStackIsInItsOwnTerms) {
  const Compiled c = small({.names = {.data = 2, .context = 2, .zero = 3}});
  const PerArena<u64>& bytes = c.program->actors[ActorId(0)].bytes;
  const Held ours = held(*c.program, on("a100-80g"))[0];
  const auto with = [&](auto change) {
    Stack s;
    change(s.memory);
    return held(*c.program, on("a100-80g", s))[0];
  };
  EXPECT_EQ(ours.states - with([](auto& m) { m.copies = false; }).states, double(bytes[Arena::params]));
  EXPECT_EQ(with([](auto& m) { m.context = true; }).states, ours.states / 2);
  EXPECT_EQ(with([](auto& m) { m.reserved = 2; }).bytes(), 2 * ours.bytes());
  EXPECT_EQ(with([](auto& m) { m.logits = 3; }).activations - ours.activations, 3.0 * 128 / 2 * 512);
}

TEST(Held, WhatIsGatheredOnceAStepIsWholeInBetween) {
  Stack keeps;
  keeps.keeps_gathered = true;
  const auto beside = [&](const Compiled& c) {
    return held(*c.program, on("a100-80g", keeps))[0].bytes() - held(*c.program, on("a100-80g"))[0].bytes();
  };
  const Compiled cut = small({.mesh = {{"pipe", 2}}, .names = {.data = 2, .zero = 3}});
  EXPECT_EQ(beside(cut), 2.0 * double(cut.program->actors[ActorId(0)].bytes[Arena::gradients]));
  EXPECT_EQ(beside(small({.mesh = {{"pipe", 2}}, .names = {.data = 2}})), 0) << "they always are";
}

TEST(Held, GradientsOf16BitsAreHalfOfTheProgramS) {
  const Compiled c = small();
  Stack half;
  half.gradient_bytes = 2;
  const double gradients = static_cast<double>(c.program->actors[ActorId(0)].bytes[Arena::gradients]);
  EXPECT_EQ(held(*c.program, on("a100-80g"))[0].states - held(*c.program, on("a100-80g", half))[0].states,
            gradients / 2);
}

}  // namespace
}  // namespace stretto
