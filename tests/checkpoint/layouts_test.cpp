// Saved under one layout, resumed under another: the losses go on as if nothing had happened.
#include <gmock/gmock.h>

#include "stretto/checkpoint/writer.h"
#include "stretto/train/snapshot.h"
#include "support/files.h"
#include "support/message.h"
#include "support/small_models.h"

namespace stretto {
namespace {

using test::Folder;
using testing::HasSubstr;

struct Way {
  std::string name;
  int microbatches = 8;
  Parallel parallel = {};
  bool exact = true;  // bits of the serial run with as many microbatches
};

std::vector<Way> ways() {
  return {{"serial"},
          {"pipe=2", 8, {.mesh = {{"pipe", 2}}}},
          {"pipe=4 zb-v", 8, {.mesh = {{"pipe", 4}}, .schedule = "zb-v"}},
          {"pipe=2 with recompute", 8, {.mesh = {{"pipe", 2}}, .recompute = {Recompute::full}}},
          {"pipe=2 chimera", 8, {.mesh = {{"pipe", 2}}, .schedule = "chimera"}, false},
          {"4 microbatches", 4, {}},
          {"pipe=2 with 2 microbatches", 2, {.mesh = {{"pipe", 2}}}}};
}

// Tied weights (copies on several actors), padding and dropout.
Trainer trainer_for(const Way& w) {
  ModelConfig c = tiny("gpt2", 4);
  c.dropout = 0.1;
  c.pad_vocab = 16;
  return Trainer(compile(make_model(c, 16, 8), adamw({.lr = 1e-2}),
                         {.microbatches = w.microbatches, .seed = 3, .clip = 0.5}, w.parallel));
}

Batch batch_for(const Trainer& t, i64 step) { return random_batch(t.compiled(), 50, u64(step)); }

constexpr i64 steps_before = 3, steps_after = 10;

std::vector<double> losses(Trainer& t, i64 last) {
  std::vector<double> all;
  while (t.steps_done() < last) all.push_back(t.step(batch_for(t, t.steps_done() + 1)).loss);
  return all;
}

void every_pair_goes_on(const std::vector<Way>& all) {
  const Folder folder;
  std::vector<std::vector<double>> whole;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Trainer t = trainer_for(all[i]);
    losses(t, steps_before);
    write_checkpoint(folder / std::to_string(i), snapshot_of(t, "config"));
    whole.push_back(losses(t, steps_before + steps_after));
  }
  for (std::size_t a = 0; a < all.size(); ++a) {
    const Checkpoint saved(folder / std::to_string(a));
    EXPECT_EQ(saved.manifest().step, steps_before);
    for (std::size_t b = 0; b < all.size(); ++b) {
      Trainer t = trainer_for(all[b]);
      restore(t, saved);
      EXPECT_EQ(t.steps_done(), steps_before);
      const std::vector<double> next = losses(t, steps_before + steps_after);
      if (all[a].microbatches == all[b].microbatches && all[a].exact && all[b].exact)
        EXPECT_EQ(next, whole[a]) << all[a].name << " -> " << all[b].name;
      else
        EXPECT_THAT(next, testing::Pointwise(testing::DoubleNear(1e-5 * whole[a][0]), whole[a]))
            << all[a].name << " -> " << all[b].name;
    }
  }
}

TEST(Layouts, EveryPairGoesOnAsIfUninterrupted) { every_pair_goes_on(ways()); }

TEST(Layouts, EveryPairOfSeveralRanksPerActorGoesOnAsIfUninterrupted) {
  every_pair_goes_on({{"serial"},
                      {"data=2 zero=1", 8, {.names = {.data = 2, .zero = 1}}, false},
                      {"tensor=2", 8, {.names = {.tensor = 2}}, false},
                      {"pipe=2 data=2 zero=3", 8, {.mesh = {{"pipe", 2}}, .names = {.data = 2, .zero = 3}}, false}});
}

// From f32 to bf16 and back, under other layouts: the same logical parameters and states, to the last bit.
TEST(Layouts, TypesChangeWithoutLoss) {
  const Folder folder;
  const auto trainer = [](DType dtype, const Parallel& p) {
    return Trainer(compile(make_model(tiny("gpt2", 4), 16, 8), adamw({.lr = 1e-2}),
                           {.microbatches = 4, .seed = 3, .dtype = dtype, .clip = 0.5}, p));
  };
  Trainer first = trainer(f32, {.mesh = {{"pipe", 2}}});
  losses(first, steps_before);
  write_checkpoint(folder / "f32", snapshot_of(first, "config"));
  Trainer half = trainer(bf16, {.mesh = {{"pipe", 2}}, .names = {.data = 2, .zero = 3}});
  restore(half, Checkpoint(folder / "f32"));
  EXPECT_EQ(half.parameters_hash(), first.parameters_hash());
  EXPECT_EQ(half.steps_done(), steps_before);
  write_checkpoint(folder / "bf16", snapshot_of(half, "config"));
  Trainer again = trainer(f32, {});
  restore(again, Checkpoint(folder / "bf16"));
  EXPECT_EQ(again.parameters_hash(), first.parameters_hash());
  EXPECT_EQ(again.state("wte", "v").bytes, first.state("wte", "v").bytes);
  // Each goes on from there in its own type: serially, and as it was.
  Trainer serial = trainer(bf16, {}), piped = trainer(bf16, {.mesh = {{"pipe", 4}}, .schedule = "zb-h1"});
  for (Trainer* t : {&serial, &piped}) restore(*t, Checkpoint(folder / "f32"));
  EXPECT_EQ(losses(serial, steps_before + 2), losses(piped, steps_before + 2));
  EXPECT_EQ(serial.parameters_hash(), piped.parameters_hash());
  EXPECT_NEAR(losses(half, steps_before + 1)[0], losses(again, steps_before + 1)[0], 0.01);
}

// f64 has all of f32; the other way round numbers are rounded to the nearest, and what f32 cannot hold is an error.
TEST(Layouts, GoesOnFromF64AndInF64) {
  const Folder folder;
  const auto trainer = [](DType dtype, const Parallel& p) {
    return Trainer(compile(make_model(tiny("llama", 4), 16, 8), adamw({.lr = 1e-2}),
                           {.microbatches = 4, .seed = 3, .dtype = dtype, .clip = 0.5}, p));
  };
  const auto equal = [](const Array& a, const Array& b) {
    const std::vector<double> x = a.doubles(), y = b.doubles();
    return std::ranges::equal(x, y, [](double p, double q) { return float(p) == float(q); });
  };
  Trainer first = trainer(f32, {.mesh = {{"pipe", 2}}});
  losses(first, steps_before);
  write_checkpoint(folder / "f32", snapshot_of(first, "config"));
  Trainer wide = trainer(f64, {.names = {.data = 2, .zero = 3}});
  restore(wide, Checkpoint(folder / "f32"));
  write_checkpoint(folder / "same", snapshot_of(wide, "config"));
  Trainer again = trainer(f32, {});
  restore(again, Checkpoint(folder / "same"));
  EXPECT_EQ(again.parameters_hash(), first.parameters_hash());
  EXPECT_EQ(again.state("wte", "v").bytes, first.state("wte", "v").bytes);
  EXPECT_THAT(losses(wide, steps_before + 2),
              testing::Pointwise(testing::DoubleNear(1e-4), losses(again, steps_before + 2)));
  write_checkpoint(folder / "f64", snapshot_of(wide, "config"));
  for (const DType t : {f32, bf16}) {
    Trainer rounded = trainer(t, {.mesh = {{"pipe", 2}}});
    restore(rounded, Checkpoint(folder / "f64"));
    EXPECT_EQ(rounded.steps_done(), steps_before + 2);
    EXPECT_TRUE(equal(rounded.parameter("wte"), wide.parameter("wte")));
    EXPECT_TRUE(equal(rounded.state("wte", "m"), wide.state("wte", "m")));
    EXPECT_NEAR(losses(rounded, steps_before + 3)[0], 4, 0.5);
  }
  Array large = wide.parameter("wte");
  reinterpret_cast<double*>(large.bytes.data())[5] = 1e300;
  wide.set_parameter("wte", large);
  write_checkpoint(folder / "large", snapshot_of(wide, "config"));
  EXPECT_EQ(refusal_of([&] { restore(again, Checkpoint(folder / "large")); }),
            "[parameter/wte] element 5 is 1e+300, which does not fit F32; hint: store it as F64");
}

TEST(Layouts, SaveAndLoadOfADirectory) {
  const Folder folder;
  const auto trainer = [](Parallel p) {
    return Trainer(compile(make_model(tiny("gpt2", 4), 16, 8), adamw({.lr = 1e-2}), {.microbatches = 4}, p));
  };
  Trainer first = trainer({});
  EXPECT_FALSE(load(first, folder / "mine"));  // the first start
  for (int i = 1; i <= 3; ++i) {
    losses(first, i);
    save(first, folder / "mine", 2);
  }
  EXPECT_EQ(checkpoints_in(folder / "mine").size(), 2u);
  Trainer piped = trainer({.mesh = {{"pipe", 2}}});
  EXPECT_TRUE(load(piped, folder / "mine"));
  EXPECT_EQ(piped.steps_done(), 3);
  EXPECT_EQ(losses(piped, 5), losses(first, 5));
  // The newest is cut off: the one before it is taken. None is whole: nothing is silently begun again.
  folder.write("mine/step-00000003/manifest.json", "{");
  Trainer before = trainer({});
  EXPECT_TRUE(load(before, folder / "mine"));
  EXPECT_EQ(before.steps_done(), 2);
  folder.write("mine/step-00000002/manifest.json", "{");
  EXPECT_THAT(refusal_of([&] { load(before, folder / "mine"); }), HasSubstr("is whole: "));
  EXPECT_THAT(refusal_of([&] { save(before, folder / "mine", 0); }), HasSubstr("keep is 0"));
}

TEST(Layouts, LeaveNoTrace) {
  const Folder folder;
  std::vector<std::string> seen;
  for (const Way& w : ways()) {
    if (w.microbatches != 8 || !w.exact) continue;
    Trainer t = trainer_for(w);
    losses(t, 2);
    write_checkpoint(folder / "c", snapshot_of(t, "config"));
    seen.push_back(test::text_of(folder / "c/manifest.json"));
  }
  EXPECT_EQ(seen.size(), 4u);
  for (const std::string& s : seen) EXPECT_EQ(s, seen[0]);  // hashes of all tensors included
  const Checkpoint c(folder / "c");
  EXPECT_EQ(c.parameter("wte").sizes, (std::vector<i64>{50, 32}));  // without padding
}

TEST(Layouts, ACopyFillsTheMemoryOfTheOneBefore) {
  const Folder folder;
  Trainer t = trainer_for(ways()[1]);
  CheckpointWriter writer(folder.str(), 2);
  std::vector<const std::byte*> before;
  for (i64 step = 1; step <= 3; ++step) {
    losses(t, step);
    Snapshot s = snapshot_of(t, "config", writer.spare());
    std::vector<const std::byte*> now;
    for (const Snapshot::Tensor& x : s.tensors) now.push_back(x.value.bytes.data());
    if (step > 1) {
      EXPECT_EQ(now, before);
    }
    before = now;
    writer.save(std::move(s));
    EXPECT_EQ(writer.wait()->error, "");
    const Checkpoint c(folder / checkpoint_name(step));
    for (const CompiledParam& p : t.compiled().params)
      EXPECT_EQ(c.parameter(p.name).bytes, t.parameter(p.name).bytes) << p.name;
  }
}

TEST(Layouts, StateGoesBackWhereItWas) {
  Trainer t = trainer_for(ways()[2]);
  losses(t, 2);
  const Array m = t.state("wte", "m"), v = t.state("h.3.up", "v");
  Trainer other = trainer_for(ways()[1]);
  other.set_state("wte", "m", m);
  other.set_state("h.3.up", "v", v);
  EXPECT_EQ(other.state("wte", "m").bytes, m.bytes);
  EXPECT_EQ(other.state("h.3.up", "v").bytes, v.bytes);
  EXPECT_THROW(other.set_state("wte", "momentum", m), Error);
  EXPECT_THROW(other.set_state("wte", "m", v), Error);
}

std::string refusal(Trainer t, const Checkpoint& c) {
  return refusal_of([&] { restore(t, c); });
}

TEST(Layouts, AnotherModelIsRefusedWithEveryTensorNamed) {
  const Folder folder;
  Trainer t = trainer_for({});
  write_checkpoint(folder / "c", snapshot_of(t, ""));
  const Checkpoint c(folder / "c");
  ModelConfig wide = tiny("gpt2", 5);
  wide.vocab = 51;
  const std::string said = refusal(Trainer(compile(make_model(wide, 2), adamw())), c);
  EXPECT_THAT(said, HasSubstr("tensor 'parameter/wte' is F32 [50, 32], and the model's is f32[51, 32]"));
  EXPECT_THAT(said, HasSubstr("tensor 'state/v/h.4.up' f32[32, 128] is missing"));
  const std::string fewer = refusal(Trainer(compile(make_model(tiny("gpt2", 3), 2), adamw())), c);
  EXPECT_THAT(fewer, HasSubstr("tensor 'parameter/h.3.up' F32 [32, 128] is no part of this model"));
  EXPECT_THAT(refusal(Trainer(compile(make_model(tiny("gpt2", 4), 2), sgd())), c),
              HasSubstr("has the state of adamw, and the run's optimizer is sgd; hint: continue with "
                        "optimizer.name = \"adamw\""));
}

}  // namespace
}  // namespace stretto
