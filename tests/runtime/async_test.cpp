// Asynchronous devices: lanes that are threads compute the same bits, whatever the timing, and fail with the same
// words.
#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>

#include "stretto/kernels/async/async_device.h"
#include "stretto/runtime/engine.h"
#include "stretto/schedule/builders.h"
#include "support/instruction_list.h"
#include "support/message.h"
#include "support/small_models.h"

namespace stretto {
namespace {
using testing::HasSubstr;

struct Case {
  const char* name;
  Parallel parallel;
  Training training = {};
  const char* family = "gpt2";
};

// Those that jitter is tried on: every lane, and every way that messages go.
std::vector<Case> ten_layouts() {
  const Mesh two{{"pipe", 2}};
  return {{"serial", {}},
          {"1f1b", {.mesh = two}},
          {"zb-v", {.mesh = two, .schedule = "zb-v"}},
          {"dualpipe", {.mesh = two, .schedule = "dualpipe"}},
          {"chimera data=2", {.mesh = two, .names = {.data = 2}, .schedule = "chimera"}},
          {"remote zb-h1", {.mesh = two, .schedule = "zb-h1", .remote = true}},
          {"remote data=2 zero=1", {.mesh = two, .names = {.data = 2, .zero = 1}, .remote = true}},
          {"data=2 zero=3", {.names = {.data = 2, .zero = 3}}},
          {"pipe=2 data=2 tensor=2 zero=2", {.mesh = two, .names = {.data = 2, .tensor = 2, .zero = 2}}},
          {"exact data=2", {.mesh = two, .names = {.data = 2}}, {.exact = true}}};
}

std::vector<Case> more_layouts() {
  const Mesh two{{"pipe", 2}};
  return {
      {"data=2", {.names = {.data = 2}}},
      {"data=2 zero=1", {.names = {.data = 2, .zero = 1}}},
      {"data=2 zero=2", {.names = {.data = 2, .zero = 2}}},
      {"zero=3 reshard", {.mesh = two, .names = {.data = 2, .zero = 3}, .regather = true, .reshard = Reshard::step}},
      {"context=2", {.names = {.context = 2}}},
      {"context=2 exchange", {.mesh = two, .names = {.context = 2, .exchange = true}}},
      {"depth=2 tensor=2", {.names = {.tensor = 2, .depth = 2}}},
      {"tensor=2 sequence", {.mesh = two, .names = {.tensor = 2, .sequence = true}}},
      {"tensor=2 sequence, no overlap", {.names = {.tensor = 2, .sequence = true}, .overlap = Overlap::none}},
      {"tensor=2 zb-v", {.mesh = two, .names = {.tensor = 2}, .schedule = "zb-v"}, {}, "llama"},
      {"recompute", {.mesh = two, .recompute = {Recompute::full}}},
      {"recompute zero=3", {.names = {.data = 2, .zero = 3}, .recompute = {Recompute::selective}}},
      {"expert=2", {.mesh = two, .names = {.expert = 2}}, {}, "mixtral"},
      {"expert=2 tensor=2 zb-h1",
       {.mesh = two, .names = {.tensor = 2, .expert = 2}, .schedule = "zb-h1"},
       {},
       "mixtral"},
      {"bf16", {.mesh = two, .names = {.data = 2, .zero = 2}}, {.dtype = bf16}},
      {"reduce in bf16", {.names = {.data = 2}, .reduce = bf16}}};
}

Compiled compiled(Case c) {
  c.training.microbatches = 4;
  c.training.clip = 1;
  ModelConfig config = tiny(c.family, 2);
  config.dropout = 0.1;
  if (config.family == "mixtral") config.experts = 4, config.top_k = 2;
  return compile(make_model(config, 16), adamw({.lr = 1e-2}), c.training, c.parallel);
}

u64 bits(const Compiled& c, RunOptions options) {
  Trainer t(c, std::move(options));
  const Batch batch = random_batch(c, 50);
  for (int i = 0; i < 2; ++i) t.step(batch);
  return t.parameters_hash();
}

TEST(Async, EveryLayoutHasTheBitsOfTheCpu) {
  for (const auto& list : {ten_layouts(), more_layouts()})
    for (const Case& each : list) {
      const Compiled c = compiled(each);
      EXPECT_EQ(bits(c, {.device = DeviceKind::async}), bits(c, {})) << each.name;
    }
}

TEST(Async, EveryScheduleHasTheBitsOfTheCpu) {
  int tried = 0;
  for (const BuilderEntry& b : schedule_builders())
    for (const bool remote : {false, true}) {
      const std::string name(b.name);
      std::optional<Compiled> c;
      try {
        c = compiled({b.name.data(), {.mesh = {{"pipe", 2}}, .schedule = name, .remote = remote}});
      } catch (const Error&) {
        continue;  // not for training, or not for two actors
      }
      ++tried;
      EXPECT_EQ(bits(*c, {.device = DeviceKind::async}), bits(*c, {})) << name << (remote ? ", remote" : "");
    }
  EXPECT_GE(tried, 26);
}

TEST(Async, JitterDoesNotChangeTheBits) {
  const u64 seeds = std::getenv("STRETTO_LONG") ? 100 : 2;
  for (const Case& each : ten_layouts()) {
    const Compiled c = compiled(each);
    const u64 right = bits(c, {});
    for (u64 seed = 1; seed <= seeds; ++seed)
      EXPECT_EQ(bits(c, {.device = DeviceKind::async, .jitter = 1e-4, .jitter_seed = seed}), right)
          << each.name << " with seed " << seed;
  }
}

Trainer trained(const Parallel& p, RunOptions o, Training training = {.microbatches = 4}) {
  return Trainer(compile(make_model(tiny("gpt2", 4), 24), adamw(), training, p), std::move(o));
}

TEST(Async, AStepCanBeEvaluatedAndMeasured) {
  for (const Parallel& p :
       {Parallel{.mesh = {{"pipe", 2}}}, {.mesh = {{"pipe", 2}}, .names = {.data = 2, .zero = 3}}}) {
    Trainer t = trained(p, {.device = DeviceKind::async}), cpu(t.compiled());
    const Batch batch = random_batch(t.compiled(), 50);
    Timeline measured;
    const StepResult r = t.step(batch, &measured);
    EXPECT_EQ(r.loss, cpu.step(batch).loss);
    EXPECT_EQ(t.evaluate(batch).loss, cpu.evaluate(batch).loss);
    std::size_t actions = 0, waits = 0, collectives = 0;
    for (const Span& s : measured.spans) {
      EXPECT_GE(s.end, s.start);
      actions += s.action.has_value();
      waits += !s.waited.empty();
      collectives += s.lane == Lane::collective;
    }
    EXPECT_GE(actions, 16u);
    EXPECT_GT(waits, 0u);  // the second actor, for its first message
    EXPECT_EQ(collectives > 0, p.names.data > 1);
    EXPECT_GT(r.bubble, 0);
    EXPECT_LT(r.bubble, 1);
  }
}

// What goes wrong is said in the words of the CPU device, and nobody waits forever.
struct Wrong {
  std::string why;
  u64 hash = 0;
};
template <class Break>
void expect_as_on_the_cpu(const Parallel& p, const Training& training, Break break_it, const char* says) {
  std::vector<Wrong> seen;
  for (const DeviceKind device : {DeviceKind::cpu, DeviceKind::async}) {
    Compiled c = trained(p, {}, training).compiled();
    c.ids.clear();  // ids are looked at by kernels alone
    Trainer t(std::move(c), {.device = device});
    Batch batch = random_batch(t.compiled(), 50);
    t.step(batch);
    break_it(t, batch);
    const std::string why = refusal_of([&] { t.step(batch); });
    seen.push_back({why, t.parameters_hash()});
    EXPECT_THAT(why, HasSubstr(says));
  }
  EXPECT_EQ(seen[0].why, seen[1].why);
  EXPECT_EQ(seen[0].hash, seen[1].hash);
}

TEST(Async, AnIdOutsideOfTheVocabularyIsNamedWithItsPlace) {
  for (const Parallel& p : {Parallel{}, {.mesh = {{"pipe", 2}}}, {.mesh = {{"pipe", 2}}, .names = {.data = 2}}})
    expect_as_on_the_cpu(
        p, {.microbatches = 4},
        [](Trainer&, Batch& batch) {
          auto* ids = reinterpret_cast<std::int32_t*>(batch.at("ids").bytes.data());
          ids[batch.at("ids").elements() - 1] = 4711;
        },
        "[embedding] id 4711 is outside of dim 'vocab', which has 50 rows");
}

TEST(Async, AStepThatIsNotFiniteChangesNothing) {
  for (const Parallel& p : {Parallel{.mesh = {{"pipe", 2}}}, {.names = {.data = 2, .zero = 3}}})
    expect_as_on_the_cpu(
        p, {.microbatches = 4, .clip = 1},
        [](Trainer& t, Batch&) {
          const std::string& last = t.compiled().params.back().name;
          Array broken = t.parameter(last);
          reinterpret_cast<float*>(broken.bytes.data())[0] = NAN;
          t.set_parameter(last, broken);
        },
        "no error");
}

// A lane of one rank throws: everybody ends, with its words and where it was.
TEST(Async, WhatAKernelThrowsSaysWhere) {
  const Compiled c = compile(make_model(tiny("gpt2", 4), 24), adamw(), {.microbatches = 4},
                             {.mesh = {{"pipe", 2}}, .names = {.data = 2}});
  Engine e(c.program, {.seed = 1, .run = {.device = DeviceKind::async}});
  const test::InstructionList code = test::list_of(e.worker(0).program().code);
  std::optional<Launch> launch;
  for (InstructionId i : code.ids())
    if (const auto* r = std::get_if<stretto::Run>(&code[i]); r && r->action && !launch)
      launch = Launch{.instruction = i.value, .call = 0};
  dynamic_cast<AsyncDevice&>(e.worker(0).device()).enqueue(DeviceLane::compute, [launch] {
    throw LaunchError{*launch, std::make_exception_ptr(std::runtime_error("no memory left"))};
  });
  EXPECT_THAT(refusal_of([&] { e.run(1); }),
              HasSubstr("[runtime] no memory left (step 1, actor 0, data=0, stage 0, F of piece 0, microbatch 0, "));
}

// A transport that loses a message, or throws.
class Broken : public Transport {
 public:
  enum class How { loses, throws };
  Broken(std::unique_ptr<Transport> inner, How how) : inner_(std::move(inner)), how_(how) {}
  void send(TransferId t, std::uint32_t round) override {
    if (t != TransferId(2)) return inner_->send(t, round);
    if (how_ == How::throws) throw Error("wire", "the cable is cut").as(Error::Kind::run);
  }
  double receive(TransferId t, std::uint32_t round) override { return inner_->receive(t, round); }
  void stop() noexcept override { inner_->stop(); }

 private:
  std::unique_ptr<Transport> inner_;
  How how_;
};
auto broken(Broken::How how) {
  return [how](std::unique_ptr<Transport> inner) { return std::make_unique<Broken>(std::move(inner), how); };
}

TEST(Async, WhatATransportThrowsEndsAllRanks) {
  Trainer t = trained({.mesh = {{"pipe", 3}}, .names = {.data = 2}},
                      {.device = DeviceKind::async, .wrap = broken(Broken::How::throws)});
  const Batch batch = random_batch(t.compiled(), 50);
  EXPECT_EQ(refusal_of([&] { t.step(batch); }), "[wire] the cable is cut");
}

TEST(Async, WatchdogNamesWhoWaitsForALostMessage) {
  Trainer t = trained({.mesh = {{"pipe", 3}}},
                      {.timeout = 0.3, .device = DeviceKind::async, .wrap = broken(Broken::How::loses)});
  const Batch batch = random_batch(t.compiled(), 50);
  const std::string why = refusal_of([&] { t.step(batch); });
  EXPECT_THAT(why, HasSubstr("[watchdog] nothing has moved for 0.3 s in step 1: actor 0 waits to receive"));
  EXPECT_THAT(why, HasSubstr("actor 1 waits to receive value"));
}

TEST(Async, RefusesWhatItCannotDo) {
  EXPECT_THAT(refusal_of([] {
                trained({.mesh = {{"pipe", 2}}}, {.link = Link{1e-3, 1e9}, .device = DeviceKind::async});
              }),
              HasSubstr("[parallel.device] messages between async devices cannot be made late; hint: leave"));
}

}  // namespace
}  // namespace stretto
