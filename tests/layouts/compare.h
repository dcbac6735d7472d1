// Runs under layouts held against the serial run of the same program: every gradient of the first step, the losses and
// gradient norms of all steps.
//
//   Reference serial({.config = small("gpt2")});
//   serial.equals({.mesh = {{"pipe", 2}}, .names = {.data = 2, .tensor = 2}});
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "stretto/base/text.h"
#include "support/in_processes.h"
#include "support/small_models.h"

namespace stretto {

struct Setting {
  ModelConfig config;
  i64 rows = 32;
  Training training = {.microbatches = 4, .seed = 3, .dtype = f64, .clip = 0.5};
  int steps = 8;
};

// Eight of everything that the usual layouts split, padded where it has to be.
inline ModelConfig small(std::string family, int layers = 2) {
  ModelConfig c{.family = std::move(family),
                .layers = layers,
                .width = 16,
                .heads = 8,
                .ff = 24,
                .context = 8,
                .vocab = 30,
                .pad_vocab = 8};
  if (c.family == "llama" || c.family == "mixtral") c.heads = 16, c.kv_heads = 2, c.head_dim = 2;
  if (c.family == "mixtral") c.experts = 8, c.balance = 0.05, c.router_z = 0.02;
  return c;
}

inline double worst_share(const Array& a, const Array& b) {
  const auto at = [](const Array& x, std::size_t i) {
    return x.dtype == f64 ? x.as<double>()[i] : double(x.as<float>()[i]);
  };
  double most = 0, apart = 0;
  for (std::size_t i = 0; i < std::size_t(a.elements()); ++i) {
    most = std::max(most, std::abs(at(a, i)));
    apart = std::max(apart, std::abs(at(a, i) - at(b, i)));
    if (std::isnan(at(b, i))) return INFINITY;
  }
  return apart == 0 ? 0 : apart / std::max(most, 1e-6);
}

// Of a step: ranks have different numbers of valid tokens, some rows none.
inline Batch step_batch(const Compiled& c, i64 vocab, int step) {
  Batch batch = random_batch(c, vocab, u64(step));
  const auto targets = batch.find("targets");
  if (targets == batch.end()) return batch;
  auto* ids = reinterpret_cast<std::int32_t*>(targets->second.bytes.data());
  const i64 n = targets->second.elements(), row = targets->second.sizes[1];
  for (i64 i = 0; i < n; ++i)
    if (i < 2 * row || i % 7 == 3 || (i > n / 2 && i % 3 == 0)) ids[i] = -100;
  return batch;
}

struct Reference {
  Setting setting;
  std::vector<StepResult> steps;
  std::map<std::string, Array> gradients;  // of the first step

  explicit Reference(Setting s) : setting(std::move(s)) {
    if (test::in_processes()) return;
    Trainer t(compiled({}));
    for (int i = 1; i <= setting.steps; ++i) {
      steps.push_back(t.step(batch(t, i)));
      if (i > 1) continue;
      for (const CompiledParam& p : t.compiled().params)
        if (!p.accumulators.empty()) gradients[p.name] = t.gradient(p.name);
    }
  }
  Compiled compiled(const Parallel& p) const {
    return compile(make_model(setting.config, setting.rows), adamw({.lr = 3e-3}), setting.training, p);
  }
  Batch batch(const Trainer& t, int step) const { return step_batch(t.compiled(), setting.config.vocab, step); }

  // As processes: equals what threads give.
  void equals(const Parallel& p) const {
    if (!test::in_processes()) return equals(compiled(p));
    test::same_in_processes(
        p, [&](const Parallel& q) { return compiled(q); }, [&](const Trainer& t, int i) { return batch(t, i); });
  }
  void equals(Compiled c) const {
    if (test::in_processes()) return equals(c.parallel);
    Trainer t(std::move(c));
    const double limit = setting.training.dtype == f64 ? 1e-10 : 1e-5;
    const auto about = [&] {
      const Parallel& q = t.compiled().parallel;
      return fmt::format("{}; {}; schedule {}, state over {}, gradients over {}, parameters over {}{}", q.mesh.str(),
                         q.layout.str(), t.compiled().program->schedule.name, join(q.storage.state, ","),
                         join(q.storage.gradients, ","), join(q.storage.params, ","), q.regather ? ", regather" : "");
    };
    for (int i = 1; i <= setting.steps; ++i) {
      const StepResult a = steps[std::size_t(i - 1)], b = t.step(batch(t, i));
      ASSERT_NEAR(a.loss, b.loss, limit * std::abs(a.loss)) << "step " << i << " on " << about();
      if (i > 1) continue;
      for (const auto& [name, gradient] : gradients)
        EXPECT_LE(worst_share(gradient, t.gradient(name)), limit) << name << " on " << about();
      ASSERT_NEAR(a.grad_norm, b.grad_norm, limit * a.grad_norm) << "step " << i << " on " << about();
    }
  }
};

}  // namespace stretto
