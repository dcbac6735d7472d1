// Schedules that hold every stage twice add two partial sums: equal to the serial run to rounding.
#include <gtest/gtest.h>

#include <cmath>

#include "stretto/schedule/builders.h"
#include "support/in_processes.h"
#include "support/small_models.h"

namespace stretto {
namespace {

std::vector<double> numbers(const Array& a) {
  std::vector<double> all;
  if (a.dtype == f64)
    for (double x : a.as<double>()) all.push_back(x);
  else
    for (float x : a.as<float>()) all.push_back(double(x));
  return all;
}

double distance(const Array& a, const Array& b) {  // max |a - b| / max |b|
  const std::vector<double> x = numbers(a), y = numbers(b);
  double most = 0, size = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    most = std::max(most, std::abs(x[i] - y[i])), size = std::max(size, std::abs(y[i]));
  return size > 0 ? most / size : most;
}

void compare(DType dtype, double tolerance) {
  int compared = 0;
  for (const char* family : {"gpt2", "llama"})
    for (const BuilderEntry& b : schedule_builders()) {
      if (b.ascending) continue;
      for (const auto& [actors, microbatches] : {std::pair{2, 4}, {4, 8}, {4, 16}}) {
        try {
          build_schedule(b.name, {.actors = actors, .microbatches = microbatches});
        } catch (const Error&) {
          continue;  // not a size of this schedule
        }
        const Model model = make_model(tiny(family, 4), 48);
        const Training training{.microbatches = microbatches, .dtype = dtype, .clip = 0.5};
        if (test::in_processes()) {
          test::same_in_processes(
              {.mesh = {{"pipe", actors}}, .schedule = std::string(b.name)},
              [&](const Parallel& p) { return compile(model, adamw({.lr = 1e-3}), training, p); },
              [](const Trainer& t, int) { return random_batch(t.compiled(), 50); });
          ++compared;
          continue;
        }
        Trainer serial(compile(model, adamw({.lr = 1e-3}), training));
        Trainer piped(compile(model, adamw({.lr = 1e-3}), training,
                              {.mesh = {{"pipe", actors}}, .schedule = std::string(b.name)}));
        const Batch batch = random_batch(serial.compiled(), 50);
        for (int step = 0; step < 3; ++step) {
          const StepResult one = serial.step(batch), two = piped.step(batch);
          EXPECT_NEAR(one.loss, two.loss, tolerance * one.loss) << b.name;
          EXPECT_NEAR(one.grad_norm, two.grad_norm, 10 * tolerance * one.grad_norm) << b.name;
          if (step > 0) continue;
          for (const CompiledParam& p : serial.compiled().params) {
            if (p.name.ends_with("attn.c_attn.bias")) continue;  // the key part's true gradient is zero
            EXPECT_LE(distance(piped.gradient(p.name), serial.gradient(p.name)), tolerance) << b.name << ' ' << p.name;
          }
        }
        EXPECT_EQ(serial.evaluate(batch).loss > 0, true);
        EXPECT_NEAR(serial.evaluate(batch).loss, piped.evaluate(batch).loss, 10 * tolerance);
        ++compared;
      }
    }
  EXPECT_GE(compared, 6);
}

TEST(TwoPipes, EqualTheSerialRunToRounding) {
  compare(f32, 1e-5);
  compare(f64, 1e-10);
}

TEST(TwoPipes, RepeatedRunsAreBitEqual) {
  const auto once = [] {
    Trainer t(compile(make_model(tiny("gpt2", 4), 48), adamw({.lr = 1e-3}), {.microbatches = 8},
                      {.mesh = {{"pipe", 4}}, .schedule = "dualpipe"}));
    const Batch batch = random_batch(t.compiled(), 50);
    for (int i = 0; i < 3; ++i) t.step(batch);
    return t.parameters_hash();
  };
  EXPECT_EQ(once(), once());
}

}  // namespace
}  // namespace stretto
