// Steps that are submitted before the ones before them are done.
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <limits>
#include <thread>

#include "stretto/train/trainer.h"
#include "support/message.h"
#include "support/small_models.h"

namespace stretto {
namespace {
using testing::HasSubstr;

Compiled compiled_for(const Parallel& parallel, double clip, bool skip = false) {
  return compile(make_model(tiny("gpt2", 4), 16), with_lr(adamw(), linear_lr({.peak = 1e-2, .steps = 10})),
                 {.microbatches = 8, .clip = clip, .skip_nonfinite = skip}, parallel);
}

struct Trained {
  std::vector<double> numbers;  // loss, norm and learning rate of every step
  u64 parameters = 0;
  int most = 0;  // steps under way
  bool operator==(const Trained& o) const { return numbers == o.numbers && parameters == o.parameters; }
};

constexpr int steps = 5;

Trained trained_ahead(const Compiled& c, RunOptions options = {}) {
  Trainer t(c, std::move(options));
  Trained r;
  for (int next = 0; next < steps || t.steps_under_way() > 0;) {
    while (t.room() && next < steps) t.submit(random_batch(c, 50, ++next));
    r.most = std::max(r.most, t.steps_under_way());
    const StepResult s = t.wait();
    r.numbers.insert(r.numbers.end(), {double(s.step), s.loss, s.grad_norm, s.lr});
  }
  r.parameters = t.parameters_hash();
  return r;
}
Trained trained_one_by_one(const Compiled& c) {
  Trainer t(c);
  Trained r;
  for (int i = 1; i <= steps; ++i) {
    const StepResult s = t.step(random_batch(c, 50, i));
    r.numbers.insert(r.numbers.end(), {double(s.step), s.loss, s.grad_norm, s.lr});
  }
  r.parameters = t.parameters_hash();
  return r;
}

TEST(Submit, SameNumbersAsStepByStepWhateverTheTiming) {
  const int seeds = std::getenv("STRETTO_LONG") ? 100 : 3;
  const Trained serial = trained_one_by_one(compiled_for({}, 0));
  for (const char* schedule : {"1f1b", "zb-h2", "zb-v", "interleaved-1f1b", "dualpipe-v"}) {
    const Compiled c = compiled_for({.mesh = {{"pipe", 4}}, .schedule = schedule}, 0);
    for (int seed = 0; seed < seeds; ++seed) {
      const Trained r = trained_ahead(c, {.jitter = 3e-4, .jitter_seed = u64(seed)});
      EXPECT_EQ(r.parameters, serial.parameters) << schedule << ", seed " << seed;
      EXPECT_EQ(r.numbers, serial.numbers) << schedule << ", seed " << seed;
      EXPECT_EQ(r.most, 2);
    }
  }
}

TEST(Submit, SameNumbersWithRanksBesideThePipelineAndWithClipping) {
  struct Case {
    Parallel parallel;
    double clip = 0;
  };
  for (const Case& x : {Case{{.mesh = {{"pipe", 2}}, .names = {.data = 2}, .schedule = "zb-h2"}},
                        Case{{.mesh = {{"pipe", 2}}, .names = {.data = 2, .zero = 3}, .schedule = "zb-v"}},
                        Case{{.mesh = {{"pipe", 2}}, .names = {.tensor = 2, .sequence = true}}},
                        Case{{.names = {.data = 2}}}, Case{{.mesh = {{"pipe", 3}}, .schedule = "zb-h1"}, 1e-2}}) {
    const Compiled c = compiled_for(x.parallel, x.clip, x.clip > 0);
    const Trained expected = trained_one_by_one(c);
    for (u64 seed = 0; seed < 4; ++seed) EXPECT_EQ(trained_ahead(c, {.jitter = 5e-4, .jitter_seed = seed}), expected);
  }
}

TEST(Submit, LanesThatAreThreadsGoOnWithTheNextStepToo) {
  for (const Parallel& p : {Parallel{.mesh = {{"pipe", 4}}, .schedule = "zb-h2"},
                            Parallel{.mesh = {{"pipe", 3}}, .schedule = "gpipe", .remote = true},
                            Parallel{.mesh = {{"pipe", 2}}, .names = {.data = 2, .zero = 2}, .schedule = "zb-v"}}) {
    const Compiled c = compiled_for(p, 0);
    const Trained expected = trained_one_by_one(c);
    for (u64 seed = 0; seed < 2; ++seed) {
      const Trained r = trained_ahead(c, {.device = DeviceKind::async, .jitter = 3e-4, .jitter_seed = seed});
      EXPECT_EQ(r, expected) << c.program->schedule.name << ", seed " << seed;
      EXPECT_EQ(r.most, 2);
    }
  }
}

// Lets the last actor end its first step only when the first actor has sent a message of the second.
class Held : public Transport {
 public:
  explicit Held(const Program& p, std::unique_ptr<Transport> inner) : program_(p), inner_(std::move(inner)) {}
  void send(TransferId t, std::uint32_t round) override {
    inner_->send(t, round);
    if (round < 2) return;
    const std::lock_guard lock(mutex_);
    second_ = true;
    changed_.notify_all();
  }
  double receive(TransferId t, std::uint32_t round) override {
    const double seconds = inner_->receive(t, round);
    if (round > 1 || !std::holds_alternative<SentSquares>(program_.transfers[t].what)) return seconds;
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(20), [&] { return second_; }));
    return seconds;
  }
  void stop() noexcept override { inner_->stop(); }

 private:
  const Program& program_;
  std::unique_ptr<Transport> inner_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool second_ = false;
};

TEST(Submit, AnActorGoesOnWhileAnotherIsInTheStepBefore) {
  const ModelConfig model{.family = "llama", .layers = 8, .width = 32, .heads = 4, .context = 16, .vocab = 50};
  const Compiled c = compile(make_model(model, 8), sgd(), {.microbatches = 8, .skip_nonfinite = false},
                             {.mesh = {{"pipe", 4}}, .schedule = "zb-h2", .stages = {5, 4, 4, 5}});
  const Trained r = trained_ahead(c, {.wrap = [&](std::unique_ptr<Transport> inner) {
                                    return std::make_unique<Held>(*c.program, std::move(inner));
                                  }});
  EXPECT_EQ(r, trained_one_by_one(c));
}

Model of_numbers() {
  return [](Trace& t) {
    const Dim batch = t.batch("batch", 4), in{"in", 4}, hidden{"hidden", 8};
    const Tensor x = t.input("x", {batch, in});
    const Tensor h = boundary(contract(x, t.param("up", {in, hidden}), in));
    return mean_of(square(contract(h, t.param("down", {hidden, Dim{"out", 2}}), hidden)));
  };
}
Batch numbers(float first) {
  std::vector<float> x(16, 0.5f);
  x[0] = first;
  return {{"x", Array::of<float>(x, {4, 4})}};
}

TEST(Submit, WhatFollowsAStepThatIsNotFiniteIsLeftOutOnDemand) {
  const Compiled c = compile(of_numbers(), sgd({.lr = 0.1}), {.microbatches = 2}, {.mesh = {{"pipe", 2}}});
  for (const Trainer::After after : {Trainer::After::finite, Trainer::After::any}) {
    Trainer t(c);
    t.step(numbers(1));
    const u64 before = t.parameters_hash();
    t.submit(numbers(std::numeric_limits<float>::infinity()));
    t.submit(numbers(2), after);
    EXPECT_FALSE(t.wait().updated);
    if (after == Trainer::After::any) {
      EXPECT_TRUE(t.wait().updated);
    }
    t.set_step(1);
    EXPECT_EQ(t.parameters_hash() == before, after == Trainer::After::finite);
    EXPECT_EQ(t.step(numbers(1)).step, 2);
  }
  Trainer carries_on(compile(of_numbers(), sgd(), {.microbatches = 2, .skip_nonfinite = false}));
  EXPECT_THAT(refusal_of([&] { carries_on.submit(numbers(1), Trainer::After::finite); }), HasSubstr("skip_nonfinite"));
}

// Norms of these steps lie on both sides of the middle one.
TEST(ClipLate, SameNumbersAsWaitingForTheNorm) {
  const Parallel zb_h2{.mesh = {{"pipe", 4}}, .schedule = "zb-h2"},
      with_data{.mesh = {{"pipe", 2}}, .names = {.data = 2, .zero = 1}, .schedule = "zb-v"};
  const Trained free = trained_one_by_one(compiled_for(zb_h2, 1e9, true));
  std::vector<double> norms;
  for (int i = 0; i < steps; ++i) norms.push_back(free.numbers[4 * i + 2]);
  std::sort(norms.begin(), norms.end());
  for (const Parallel& parallel : {zb_h2, with_data, Parallel{}})
    for (const double clip : {norms[0] / 2, norms[2], norms[4] * 2}) {
      const auto compiled = [&](bool late) {
        return compile(make_model(tiny("gpt2", 4), 16), with_lr(adamw(), linear_lr({.peak = 1e-2, .steps = 10})),
                       {.microbatches = 8, .clip = clip, .clip_late = late}, parallel);
      };
      const Compiled late = compiled(true);
      const Trained expected = trained_one_by_one(compiled(false));
      EXPECT_EQ(trained_one_by_one(late), expected);
      for (u64 seed = 0; seed < 3; ++seed)
        EXPECT_EQ(trained_ahead(late, {.jitter = 5e-4, .jitter_seed = seed}), expected) << clip;
      EXPECT_EQ(trained_ahead(late).most, parallel.mesh.empty() ? 1 : 2);
    }
}

TEST(ClipLate, AStepThatIsNotFiniteIsUndone) {
  const auto numbers_of = [](bool late, bool ahead, Trainer::After after) {
    const Compiled c = compile(of_numbers(), adamw({.lr = 0.1}), {.microbatches = 2, .clip = 1, .clip_late = late},
                               {.mesh = {{"pipe", 2}}});
    Trainer t(c);
    std::vector<double> all;
    const float inputs[] = {1, std::numeric_limits<float>::infinity(), 2, 1000, 3};
    for (int next = 0; next < 5 || t.steps_under_way() > 0;) {
      while (next < 5 && t.room() && (ahead || t.steps_under_way() == 0)) t.submit(numbers(inputs[next++]), after);
      const StepResult r = t.wait();
      if (after == Trainer::After::finite && !r.updated) {
        t.set_step(r.step - 1);
        break;
      }
      all.insert(all.end(), {double(r.updated), r.updated ? r.loss : 0});
    }
    all.push_back(double(t.parameters_hash()));
    return all;
  };
  for (const Trainer::After after : {Trainer::After::any, Trainer::After::finite}) {
    const std::vector<double> expected = numbers_of(false, false, after);
    EXPECT_EQ(expected.size(), after == Trainer::After::any ? 11u : 3u);
    EXPECT_EQ(numbers_of(false, true, after), expected);
    EXPECT_EQ(numbers_of(true, true, after), expected);
    EXPECT_EQ(numbers_of(true, false, after), expected);
  }
}

TEST(ClipLate, KeepsWhatTwoStepsBeganWith) {
  const auto bytes = [](bool late) {
    const Compiled c = compile(of_numbers(), adamw(), {.microbatches = 2, .clip_late = late}, {.mesh = {{"pipe", 2}}});
    EXPECT_EQ(c.program->memory_str().find("Kept: weights") != std::string::npos, late);
    return c.program->actors[ActorId(0)].bytes;
  };
  EXPECT_EQ(bytes(false)[Arena::kept], 0u);
  const PerArena<u64> with = bytes(true);
  EXPECT_EQ(with[Arena::kept], 2 * (with[Arena::params] + with[Arena::state]));
  EXPECT_THAT(refusal_of([] { compile(of_numbers(), adamw(), {.clip_late = true, .skip_nonfinite = false}); }),
              HasSubstr("[train] clip_late undoes steps that are not finite, and nonfinite = \"continue\" goes on"));
}

TEST(Submit, AnErrorEndsAllThatIsUnderWay) {
  Compiled c = compiled_for({.mesh = {{"pipe", 2}}, .schedule = "zb-h1"}, 0);
  c.ids.clear();  // seen while the step runs
  Trainer t(c);
  Batch wrong = random_batch(c, 50);
  reinterpret_cast<std::int32_t*>(wrong.at("ids").bytes.data())[3] = 77;
  t.submit(wrong);
  const std::string late = refusal_of([&] { t.submit(random_batch(c, 50)); });  // unless the first one was faster
  if (late != "no error") {
    EXPECT_THAT(late, HasSubstr("77"));
  }
  EXPECT_THAT(refusal_of([&] { t.wait(); }), testing::AllOf(HasSubstr("step 1"), HasSubstr("77")));
  EXPECT_EQ(t.steps_under_way(), 0);
  EXPECT_EQ(t.steps_done(), 0);
  EXPECT_THAT(refusal_of([&] { t.submit(random_batch(c, 50)); }), HasSubstr("77"));
  EXPECT_EQ(t.steps_under_way(), 0) << "what was refused is not under way";
}

// What the step before it came to is not lost with it.
TEST(Submit, AnErrorLeavesTheStepBeforeItAsItIs) {
  for (const Parallel& p : {Parallel{.mesh = {{"pipe", 2}}, .schedule = "zb-h1"}, Parallel{.names = {.data = 2}}}) {
    Compiled c = compiled_for(p, 0);
    c.ids.clear();
    Trainer t(c), alone(c);
    const Batch right = random_batch(c, 50);
    Batch wrong = right;
    reinterpret_cast<std::int32_t*>(wrong.at("ids").bytes.data())[3] = 77;
    t.submit(right);
    if (!t.room()) continue;
    t.submit(wrong);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // both have ended, as a rule
    const StepResult first = t.wait();
    EXPECT_EQ(first.step, 1);
    EXPECT_EQ(first.loss, alone.step(right).loss);
    EXPECT_THAT(refusal_of([&] { t.wait(); }), testing::AllOf(HasSubstr("step 2"), HasSubstr("77")));
    EXPECT_EQ(t.steps_done(), 1);
  }
}

TEST(Submit, ParametersAreOutOfReachWhileAStepIsUnderWay) {
  const Compiled c = compiled_for({.mesh = {{"pipe", 2}}}, 0);
  Trainer t(c);
  EXPECT_THAT(refusal_of([&] { t.wait(); }), HasSubstr("no step is under way; hint: call submit(batch) first"));
  const Batch batch = random_batch(c, 50);
  t.submit(batch);
  const std::string name = c.params[ParamId(0)].name;
  const Array value = Trainer(c).parameter(name);
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { t.parameter(name); }, [&] { t.gradient(name); }, [&] { t.set_parameter(name, value); },
           [&] { t.evaluate(batch); }, [&] { t.step(batch); }, [&] { t.parameters_hash(); }})
    EXPECT_THAT(refusal_of(call), HasSubstr("step 1 is under way; hint: call wait()"));
  t.submit(batch);
  EXPECT_THAT(refusal_of([&] { t.submit(batch); }), HasSubstr("2 steps are under way, and no more can be"));
  EXPECT_THAT(refusal_of([&] { Trainer(c).submit({}); }), HasSubstr("[batch]"));
  t.wait();
  t.wait();
  EXPECT_EQ(t.steps_done(), 2);
  EXPECT_GT(t.evaluate(batch).loss, 0);
}

TEST(Submit, NobodyHasToWait) {
  const Compiled c = compiled_for({.mesh = {{"pipe", 4}}, .schedule = "zb-h2"}, 0);
  for (u64 seed = 0; seed < 8; ++seed) {
    Trainer t(c, {.jitter = 1e-3, .jitter_seed = seed});
    t.submit(random_batch(c, 50));
    t.submit(random_batch(c, 50));
  }
}

}  // namespace
}  // namespace stretto
