// Several make-believe CUDA devices: messages, collectives and steps under way as they are between GPUs of one machine.
#include <gmock/gmock.h>

#include <cstdlib>

#include "stretto/kernels/cuda/cuda_device.h"
#include "stretto/runtime/engine.h"
#include "support/cuda/make_believe.h"
#include "support/message.h"
#include "support/small_models.h"

namespace stretto {
namespace {
using testing::AllOf;
using testing::HasSubstr;

class CudaRanks : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::make_believe_cuda()) GTEST_SKIP() << "there is no NVRTC on this machine";
    use_cuda_api(test::make_believe_cuda());
  }
  void TearDown() override { use_cuda_api(nullptr), test::make_believe() = {}; }
};

struct Layout {
  const char* name;
  Parallel parallel;
};
using Layouts = std::vector<Layout>;

const Mesh two_stages{{"pipe", 2}};

Compiled compiled(const std::string& family, Parallel parallel, Training training = {.microbatches = 4, .clip = 1}) {
  ModelConfig model{.family = family, .layers = 4, .width = 16, .heads = 2, .context = 8, .vocab = 50};
  model.dropout = family == "gpt2" ? 0.1 : 0;
  if (family == "mixtral") model.layers = 2, model.experts = 4, model.top_k = 2;
  return compile(make_model(model, 8), adamw({.lr = 1e-2}), training, parallel);
}

struct Trained {
  std::vector<double> losses;
  u64 hash = 0;
};
// Three steps, two of them under way where they can be.
Trained train(const Compiled& c, const RunOptions& options) {
  Trainer t(c, options);
  const Batch batch = random_batch(c, 50);
  Trained r;
  for (int step = 0; step < 3; ++step) {
    if (!t.room()) r.losses.push_back(t.wait().loss);
    t.submit(batch);
  }
  while (t.steps_under_way() > 0) r.losses.push_back(t.wait().loss);
  r.hash = t.parameters_hash();
  return r;
}

// Losses are the CPU's, and where two layouts have the same bits on the CPU, they have the same bits here.
void agree(const std::string& family, const Layouts& layouts) {
  std::map<u64, std::map<u64, std::string>> seen;  // per hash on the CPU, the hashes here
  for (const Layout& layout : layouts) {
    const Compiled c = compiled(family, layout.parallel);
    const Trained cpu = train(c, {}), cuda = train(c, {.device = DeviceKind::cuda});
    for (std::size_t s = 0; s < cpu.losses.size(); ++s)
      EXPECT_NEAR(cuda.losses[s], cpu.losses[s], 1e-5 * cpu.losses[s]) << layout.name << ", step " << s;
    auto& here = seen[cpu.hash];
    here[cuda.hash] += std::string(" ") + layout.name + ";";
    EXPECT_EQ(here.size(), 1u) << testing::PrintToString(here);
  }
  EXPECT_LT(seen.size(), layouts.size());
}

TEST_F(CudaRanks, PipelinesOfGpt2HaveTheBitsOfOneRank) {
  agree("gpt2", {{"serial", {}},
                 {"1f1b", {.mesh = two_stages}},
                 {"zb-h1", {.mesh = {{"pipe", 4}}, .schedule = "zb-h1"}},
                 {"zb-v", {.mesh = two_stages, .schedule = "zb-v"}},
                 {"dualpipe-v", {.mesh = two_stages, .schedule = "dualpipe-v"}},
                 {"remote", {.mesh = two_stages, .remote = true}}});
}

TEST_F(CudaRanks, LayoutsOfGpt2HaveOneHashEach) {
  agree("gpt2", {{"tensor=2", {.names = {.tensor = 2}}},
                 {"tensor=2 zb-v", {.mesh = two_stages, .names = {.tensor = 2}, .schedule = "zb-v"}},
                 {"data=2 zero=3", {.names = {.data = 2, .zero = 3}}},
                 {"data=2 zero=3 zb-v", {.mesh = two_stages, .names = {.data = 2, .zero = 3}, .schedule = "zb-v"}},
                 {"data=2", {.mesh = two_stages, .names = {.data = 2}}},
                 {"data=2 dualpipe-v", {.mesh = two_stages, .names = {.data = 2}, .schedule = "dualpipe-v"}}});
}

TEST_F(CudaRanks, EightOfLlama) {
  agree("llama", {{"1f1b", {.mesh = two_stages, .names = {.data = 2, .tensor = 2, .zero = 2}}},
                  {"zb-h1", {.mesh = two_stages, .names = {.data = 2, .tensor = 2, .zero = 2}, .schedule = "zb-h1"}}});
}

TEST_F(CudaRanks, ExchangedRowsOfMixtral) {
  const auto exchanged = [](Parallel p) {
    p.names.expert = 2, p.expert_rows = ExpertRows::exchange;
    return p;
  };
  agree("mixtral", {{"expert=2", exchanged({})},
                    {"1f1b", exchanged({.mesh = two_stages})},
                    {"zb-h1", exchanged({.mesh = two_stages, .schedule = "zb-h1"})}});
}

TEST_F(CudaRanks, EveryFamilyUnderEverySchedule) {
  if (!std::getenv("STRETTO_LONG")) GTEST_SKIP() << "only in a long run";
  for (const char* family : {"gpt2", "llama", "mixtral"})
    for (const ParallelNames& names :
         {ParallelNames{}, {.tensor = 2}, {.data = 2, .zero = 3}, {.data = 2}, {.expert = 2}}) {
      if (names.expert > 1 && family != std::string("mixtral")) continue;
      Layouts all{{"alone", {.names = names}}};
      for (const char* schedule : {"1f1b", "zb-v", "zb-h1", "dualpipe-v"})
        all.push_back({schedule, {.mesh = two_stages, .names = names, .schedule = schedule}});
      agree(family, all);
    }
}

TEST_F(CudaRanks, JitterOfStreamsChangesNoBit) {
  for (const Parallel& p : {Parallel{.mesh = two_stages, .names = {.data = 2, .zero = 3}, .schedule = "zb-v"},
                            {.mesh = two_stages, .names = {.tensor = 2}}}) {
    const Compiled c = compiled("gpt2", p);
    test::make_believe().jitter = 0;
    const u64 hash = train(c, {.device = DeviceKind::cuda}).hash;
    for (const unsigned seed : {1u, 2u}) {
      test::make_believe().jitter = seed;
      EXPECT_EQ(train(c, {.device = DeviceKind::cuda}).hash, hash) << seed;
    }
  }
}

// Streams do nothing until all hosts have put the whole step into them: who waited for one, or for numbers of one, in
// the middle of a step would be found. Memory of devices is none of the host's, which would end at its first look.
TEST_F(CudaRanks, HostsWaitOnlyWhereAStepEnds) {
  struct Case {
    const char* family;
    Parallel parallel;
  };
  for (const Case& each :
       std::vector<Case>{{"gpt2", {}},
                         {"gpt2", {.mesh = two_stages}},
                         {"gpt2", {.mesh = two_stages, .schedule = "zb-v"}},
                         {"gpt2", {.mesh = two_stages, .schedule = "dualpipe-v"}},
                         {"gpt2", {.names = {.tensor = 2}}},
                         {"gpt2", {.names = {.data = 2, .zero = 3}}},
                         {"gpt2", {.mesh = two_stages, .names = {.data = 2, .zero = 2}, .schedule = "zb-h1"}},
                         {"mixtral", {.names = {.expert = 2}, .expert_rows = ExpertRows::exchange}}}) {
    const Compiled c = compiled(each.family, each.parallel);
    const Batch batch = random_batch(c, 50);
    Trainer free(c, {.device = DeviceKind::cuda}), still(c, {.device = DeviceKind::cuda});
    for (int step = 0; step < 2; ++step) {
      free.step(batch);
      test::make_believe_stands_still(c.program->ranks());
      still.step(batch);
      EXPECT_TRUE(test::make_believe_stood_still()) << each.family << " " << c.program->schedule.name;
    }
    EXPECT_EQ(still.parameters_hash(), free.parameters_hash());
  }
}

TEST_F(CudaRanks, StepsTakeNoMemory) {
  const Compiled c = compiled("gpt2", {.mesh = two_stages, .names = {.data = 2, .zero = 3}});
  Trainer t(c, {.device = DeviceKind::cuda});
  const Batch batch = random_batch(c, 50);
  const auto step = [&] {
    const test::MakeBelieveCounts before = test::make_believe_counts();
    t.step(batch);
    const test::MakeBelieveCounts after = test::make_believe_counts();
    EXPECT_EQ(after.allocations, before.allocations);
    return after.launches - before.launches;
  };
  const u64 launches = step();
  EXPECT_EQ(step(), launches);
}

// A clip that is known too late takes the step back: parameters are kept on the device.
TEST_F(CudaRanks, StepsThatAreTakenBackAndEvaluation) {
  const Compiled c = compiled("gpt2", {.mesh = two_stages, .names = {.data = 2}},
                              {.microbatches = 4, .clip = 0.05, .clip_late = true});
  Trainer cpu(c), cuda(c, {.device = DeviceKind::cuda});
  const Batch batch = random_batch(c, 50);
  for (int step = 0; step < 2; ++step) {
    const double loss = cpu.step(batch).loss;
    EXPECT_NEAR(cuda.step(batch).loss, loss, 1e-5 * loss);
  }
  const double loss = cpu.evaluate(batch).loss;
  EXPECT_NEAR(cuda.evaluate(batch).loss, loss, 1e-5 * loss);
}

// Parameters that nobody writes lie on every device.
TEST_F(CudaRanks, FrozenParametersAreEachDevicesOwn) {
  const ModelConfig model{.family = "gpt2", .layers = 2, .width = 16, .heads = 2, .context = 8, .vocab = 50};
  const Compiled c = compile(make_model(model, 8), adamw({.lr = 1e-2}), {.microbatches = 2, .frozen = {"wte", "h.0.*"}},
                             {.names = {.data = 2}});
  const Trained cpu = train(c, {}), cuda = train(c, {.device = DeviceKind::cuda});
  for (std::size_t s = 0; s < cpu.losses.size(); ++s) EXPECT_NEAR(cuda.losses[s], cpu.losses[s], 1e-5 * cpu.losses[s]);
}

TEST_F(CudaRanks, TimelinesAreMeasuredByEvents) {
  const Compiled c = compiled("gpt2", {.mesh = two_stages, .names = {.data = 2}});
  Trainer t(c, {.device = DeviceKind::cuda});
  Timeline measured;
  const StepResult r = t.step(random_batch(c, 50), &measured);
  std::size_t actions = 0, waits = 0, collectives = 0;
  for (const Span& s : measured.spans) {
    EXPECT_GE(s.end, s.start);
    actions += s.action.has_value(), waits += !s.waited.empty(), collectives += s.lane == Lane::collective;
  }
  EXPECT_GE(actions, 16u);
  EXPECT_GT(waits, 0u);
  EXPECT_GT(collectives, 0u);
  EXPECT_GT(r.bubble, 0);
}

TEST_F(CudaRanks, AnIdOutOfRangeHasTheMessageOfTheCpu) {
  const auto message = [&](DeviceKind device) {
    Compiled c = compiled("gpt2", {.mesh = two_stages, .names = {.data = 2}});
    c.ids.clear();  // ids are looked at by kernels alone
    Trainer t(c, {.device = device});
    Batch batch = random_batch(c, 50);
    auto* ids = reinterpret_cast<std::int32_t*>(batch.at("ids").bytes.data());
    ids[batch.at("ids").elements() - 1] = 4711;
    return refusal_of([&] { t.step(batch); });
  };
  EXPECT_THAT(message(DeviceKind::cuda), HasSubstr("4711"));
  EXPECT_EQ(message(DeviceKind::cuda), message(DeviceKind::cpu));
}

// A kernel of one device goes wrong while the others wait for it.
TEST_F(CudaRanks, ADeviceThatFailsEndsAllRanks) {
  for (const Parallel& p : {Parallel{.mesh = two_stages, .names = {.data = 2}}, {.names = {.tensor = 2}}}) {
    const Compiled c = compiled("gpt2", p);
    Engine e(c.program, {.seed = 1, .run = {.device = DeviceKind::cuda}, .ahead = true});
    std::array<std::byte*, 16> nowhere;
    nowhere.fill(reinterpret_cast<std::byte*>(256));
    const Now now;
    e.worker(1).device().launch(DeviceLane::compute, KernelId(0),
                                {.in = nowhere.data(), .out = nowhere.data(), .now = now});
    EXPECT_THAT(refusal_of([&] { e.run(1); }),
                AllOf(HasSubstr("[cuda] cu"), HasSubstr("outside of all memory"), HasSubstr("step 1, actor 0")));
  }
}

class LosesAMessage : public Transport {
 public:
  explicit LosesAMessage(std::unique_ptr<Transport> inner) : inner_(std::move(inner)) {}
  void send(TransferId t, std::uint32_t round) override {
    if (t != TransferId(0)) inner_->send(t, round);
  }
  double receive(TransferId t, std::uint32_t round) override { return inner_->receive(t, round); }
  void stop() noexcept override { inner_->stop(); }

 private:
  std::unique_ptr<Transport> inner_;
};

TEST_F(CudaRanks, TheWatchdogNamesWhoWaitsForALostMessage) {
  const Compiled c = compiled("gpt2", {.mesh = two_stages});
  Trainer t(c, {.timeout = 1, .device = DeviceKind::cuda, .wrap = [](std::unique_ptr<Transport> inner) {
                  return std::make_unique<LosesAMessage>(std::move(inner));
                }});
  EXPECT_THAT(refusal_of([&] { t.step(random_batch(c, 50)); }),
              AllOf(HasSubstr("[watchdog] nothing has moved"), HasSubstr("waits to receive value")));
}

TEST_F(CudaRanks, WhatDevicesCannotDoIsRefused) {
  const auto refused = [] {
    return refusal_of([] { Trainer(compiled("gpt2", {.mesh = two_stages}), {.device = DeviceKind::cuda}); });
  };
  test::make_believe().devices = 1;
  EXPECT_THAT(refused(), HasSubstr("[parallel.device] rank 1 needs a CUDA device of its own, and there are 1"));
  test::make_believe() = {.reach = false};
  EXPECT_THAT(refused(), HasSubstr("does not reach the memory of device 1"));
  test::make_believe() = {};
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", 1);
  EXPECT_THAT(refused(), HasSubstr("[parallel.device] CUDA_DEVICE_MAX_CONNECTIONS is 1, and ranks that wait for each "
                                   "other need 6 or more; hint: unset it"));
  unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
}

}  // namespace
}  // namespace stretto
