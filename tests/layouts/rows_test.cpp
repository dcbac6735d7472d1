// Rows that are exchanged between the ranks that share experts: the numbers are those of the serial run whatever comes,
// and the bits depend neither on the schedule nor on the room there is.
#include "layouts/compare.h"

namespace stretto {
namespace {

Setting setting(DType dtype, int steps = 3) {
  Setting s{.config = small("mixtral", 3), .rows = 16, .steps = steps};
  s.training.microbatches = 2;
  s.training.dtype = dtype;
  return s;
}

Parallel exchanging(const ParallelNames& names, double room = 1.5) {
  return {.names = names, .expert_rows = ExpertRows::exchange, .expert_room = room};
}

struct Ran {
  u64 bits = 0;
  double room = 0, loss = 0;
};

// A router that says nothing: all tokens choose the first experts, so that some ranks get everything, others nothing.
void make_indifferent(Trainer& t, const std::string& router) {
  Array zero = t.parameter(router);
  std::fill(zero.bytes.begin(), zero.bytes.end(), std::byte(0));
  t.set_parameter(router, zero);
}

// `skewed`: in every layer.
Ran ran(const Setting& s, const Parallel& p, bool skewed, const RunOptions& run = {}) {
  Trainer t(compile(make_model(s.config, s.rows), adamw({.lr = 3e-3}), s.training, p), run);
  for (int layer = 0; skewed && layer < s.config.layers; ++layer)
    make_indifferent(t, fmt::format("h.{}.router", layer));
  Ran r;
  for (int i = 1; i <= s.steps; ++i) {
    const StepResult step = t.step(step_batch(t.compiled(), s.config.vocab, i));
    EXPECT_TRUE(step.updated);
    EXPECT_EQ(step.step, i);
    EXPECT_FALSE(step.lost);
    r.loss = step.loss;
  }
  r.bits = t.parameters_hash();
  r.room = t.compiled().parallel.expert_room;
  return r;
}

TEST(Rows, AnyRoomGivesTheSameBits) {
  for (const bool skewed : {false, true})
    for (const ParallelNames& names : {ParallelNames{.expert = 4}, {.data = 2, .expert = 4, .zero = 3}}) {
      const Ran wide = ran(setting(f32), exchanging(names, 4), skewed),
                narrow = ran(setting(f32), exchanging(names, 1), skewed);
      EXPECT_EQ(wide.room, 4) << "nothing can be lost";
      EXPECT_GT(narrow.room, 1) << "an even share is not what comes";
      EXPECT_EQ(wide.bits, narrow.bits) << "skewed: " << skewed;
    }
}

// What the first layer loses is not a number to those behind it, which must not hide that more room is what helps.
struct Lossy {
  const char* what;
  std::function<void(Setting&, Parallel&, RunOptions&)> set;
  bool skewed = false;
};
std::ostream& operator<<(std::ostream& to, const Lossy& x) { return to << x.what; }

class LossyLayers : public testing::TestWithParam<Lossy> {};

TEST_P(LossyLayers, HaveTheBitsOfLayersWithRoom) {
  Setting s = setting(f32, 2);
  Parallel p = exchanging({.expert = 8}, 1);
  RunOptions run;
  GetParam().set(s, p, run);
  const Ran narrow = ran(s, p, GetParam().skewed, run);
  p.expert_room = expert_ranks(p);
  const Ran wide = ran(s, p, GetParam().skewed, run);
  EXPECT_EQ(wide.room, p.expert_room) << "nothing can be lost";
  EXPECT_GT(narrow.room, 1);
  EXPECT_EQ(narrow.bits, wide.bits);
  EXPECT_EQ(narrow.loss, wide.loss);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, LossyLayers,
    testing::Values(
        Lossy{"f32", [](Setting&, Parallel&, RunOptions&) {}},
        Lossy{"f64", [](Setting& s, Parallel&, RunOptions&) { s.training.dtype = f64; }},
        Lossy{"bf16", [](Setting& s, Parallel&, RunOptions&) { s.training.dtype = bf16; }},
        Lossy{"AllTokensChooseTheFirstExperts", [](Setting&, Parallel&, RunOptions&) {}, true},
        Lossy{"OneExpertPerToken", [](Setting& s, Parallel&, RunOptions&) { s.config.top_k = 1; }, true},
        Lossy{"SigmoidAndEvenLoads",
              [](Setting& s, Parallel&, RunOptions&) {
                s.config.score = Score::sigmoid, s.config.balance = 0;
                s.config.select_bias = true, s.config.balance_rate = 1e-2;
              }},
        Lossy{"OneMicrobatch", [](Setting& s, Parallel&, RunOptions&) { s.training.microbatches = 1; }},
        Lossy{"DenseLayersBetween", [](Setting& s, Parallel&, RunOptions&) { s.config.sparse = "ede"; }},
        Lossy{"ClipLate",
              [](Setting& s, Parallel& p, RunOptions&) {
                s.training.clip_late = true, p.names.expert = 4, p.mesh = {{"pipe", 2}}, p.schedule = "zb-h2";
              }},
        Lossy{"Pipeline",
              [](Setting&, Parallel& p, RunOptions&) {
                p.names = {.data = 2, .expert = 4, .zero = 3}, p.mesh = {{"pipe", 2}}, p.schedule = "zb-v";
                p.recompute = {Recompute::full};
              }},
        Lossy{"AsynchronousDevices", [](Setting&, Parallel&, RunOptions& run) { run.device = DeviceKind::async; }}),
    [](const auto& i) { return std::string(i.param.what); });

TEST(Rows, ALaterLayerAloneMayLoseSome) {
  const Setting s = setting(f32, 1);
  Trainer t(compile(make_model(s.config, s.rows), adamw({}), s.training, exchanging({.expert = 8}, 2)));
  make_indifferent(t, "h.2.router");
  const Batch batch = step_batch(t.compiled(), s.config.vocab, 1);
  const StepResult r = t.step(batch);
  EXPECT_TRUE(r.updated);
  EXPECT_EQ(t.compiled().parallel.expert_room, 4) << "a half of the rows is for each of two experts";
}

TEST(Rows, EverySeedSurvives) {
  int grown = 0;
  for (u64 seed = 1; seed <= 48; ++seed) {
    Setting s = setting(f32, 2);
    s.config.layers = 2, s.config.top_k = 1, s.rows = 8, s.training.microbatches = 1, s.training.seed = seed;
    grown += ran(s, {.names = {.expert = 4}}, false).room > 1.5;
  }
  EXPECT_GT(grown, 24);
}

TEST(Rows, OneRankMayGetEverything) {
  for (const DType dtype : {f32, f64}) {
    const Setting s = setting(dtype);
    const Ran serial = ran(s, {}, true);
    for (const int expert : {2, 4, 8})
      for (const ExpertRows how : {ExpertRows::gather, ExpertRows::exchange}) {
        const Ran shared = ran(s, {.names = {.expert = expert}, .expert_rows = how}, true);
        EXPECT_NEAR(shared.loss, serial.loss, (dtype == f64 ? 1e-10 : 1e-5) * serial.loss) << expert;
      }
  }
}

TEST(Rows, SchedulesAndRecomputeOfOneLayout) {
  Setting s = setting(f32, 2);
  const ParallelNames names{.tensor = 2, .expert = 4};
  const u64 one = ran(s, exchanging(names), false).bits;
  for (const char* schedule : {"1f1b", "zb-h1", "zb-v"})
    for (const Recompute again : {Recompute::none, Recompute::full, Recompute::selective}) {
      Parallel p = exchanging(names);
      p.mesh = {{"pipe", 2}};
      p.schedule = schedule, p.recompute = {again};
      EXPECT_EQ(one, ran(s, p, false).bits) << schedule << " " << name_of(again);
    }
  EXPECT_EQ(one, ran(s, exchanging(names), false, {.device = DeviceKind::async}).bits);
  for (const u64 seed : {1, 2, 3})
    EXPECT_EQ(one, ran(s, exchanging(names), false, {.jitter = 2e-4, .jitter_seed = seed}).bits) << "any timing";
}

TEST(Rows, OptionsOfExperts) {
  Setting s = setting(f64, 2);
  s.config.expert_bias = s.config.router_bias = true, s.config.shared_ff = 16, s.config.top_k = 3;
  const Reference r(s);
  for (const bool sequence : {false, true}) r.equals(exchanging({.tensor = 2, .expert = 4, .sequence = sequence}));
  r.equals(exchanging({.expert = 2, .context = 2}));
  r.equals(exchanging({.expert = 4}, 1));  // more comes than an even share: steps are made again
  r.equals({.mesh = {{"d", 4}}, .layout = {{"batch", "d"}, {"experts", "d"}}, .expert_rows = ExpertRows::exchange});
  r.equals(exchanging({.data = 2}));  // nobody shares experts: rows stay
  s.config.route_on_input = true, s.config.expert_bias = false;
  Reference(s).equals(exchanging({.expert = 2}));
}

TEST(Rows, EvaluationGoesOnAfterMoreRoomWasMade) {
  Setting s = setting(f32);
  s.config.balance = s.config.router_z = 0;
  Trainer t(compile(make_model(s.config, s.rows), adamw({.lr = 3e-3}), s.training, exchanging({.expert = 4}, 1)));
  const Batch batch = step_batch(t.compiled(), s.config.vocab, 1);
  const double before = t.evaluate(batch).loss;
  Timeline drawn;
  EXPECT_NEAR(t.step(batch, &drawn).loss, before, 1e-5 * before);
  EXPECT_GT(t.compiled().parallel.expert_room, 1);
  EXPECT_FALSE(drawn.spans.empty());
  EXPECT_LT(t.evaluate(batch).loss, before);
}

// A router that is not a number sends all rows one way, and no room would make its step finite.
TEST(Rows, ADivergedRunIsNotOneWithoutRoom) {
  const Setting s = setting(f32);
  Trainer t(compile(make_model(s.config, s.rows), adamw({}), s.training, exchanging({.expert = 4}, 1.5)));
  const std::string router = "h.1.router";
  const Array kept = t.parameter(router);
  Array broken = kept;
  const float none = std::numeric_limits<float>::quiet_NaN();
  for (std::size_t i = 0; i < broken.bytes.size(); i += sizeof none) std::memcpy(&broken.bytes[i], &none, sizeof none);
  t.set_parameter(router, broken);
  const u64 before = t.parameters_hash();
  const StepResult r = t.step(step_batch(t.compiled(), s.config.vocab, 1));
  EXPECT_TRUE(std::isnan(r.loss));
  EXPECT_FALSE(r.updated);
  EXPECT_EQ(t.compiled().parallel.expert_room, 1.5);
  EXPECT_EQ(t.parameters_hash(), before);
  t.set_parameter(router, kept);
  EXPECT_TRUE(t.step(step_batch(t.compiled(), s.config.vocab, 2)).updated);
}

TEST(Rows, WhatCannotBeExchangedIsRefused) {
  Setting slots = setting(f32);
  slots.config.capacity = 1;
  EXPECT_THROW(compile(make_model(slots.config, 16), adamw({}), slots.training, exchanging({.expert = 4})), Error);
  Setting s = setting(f32);
  s.training.skip_nonfinite = false;
  EXPECT_THROW(compile(make_model(s.config, s.rows), adamw({}), s.training, exchanging({.expert = 4})), Error);
  EXPECT_THROW(compile(make_model(s.config, s.rows), adamw({}), setting(f32).training,
                       {.mesh = {{"e", 2}, {"d", 2}},
                        .layout = {{"batch", {"e", "d"}}, {"experts", "e"}},
                        .expert_rows = ExpertRows::exchange}),
               Error)
      << "who has which tokens would be another order";
}

// What was not asked for is not refused: rows are gathered instead.
TEST(Rows, AreGatheredWhereTheyCannotBeExchanged) {
  Setting s = setting(f32);
  s.config.top_k = 1;
  const auto exchanges = [&](const Training& t, const Parallel& p) {
    const Compiled c = compile(make_model(s.config, s.rows), adamw({}), t, p);
    return !c.exchanges.empty();
  };
  EXPECT_TRUE(exchanges(s.training, {.names = {.expert = 2}}));
  Training goes_on = s.training;
  goes_on.skip_nonfinite = false;
  EXPECT_FALSE(exchanges(goes_on, {.names = {.expert = 2}}));
  const Mesh mesh{{"e", 2}, {"d", 2}};
  EXPECT_TRUE(exchanges(s.training, {.mesh = mesh, .layout = {{"batch", {"d", "e"}}, {"experts", "e"}}}));
  EXPECT_FALSE(exchanges(s.training, {.mesh = mesh, .layout = {{"batch", {"e", "d"}}, {"experts", "e"}}}));
}

}  // namespace
}  // namespace stretto
