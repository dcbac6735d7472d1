// Optimizers against plain loops in double precision.
#include "stretto/optim/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "stretto/stretto.h"
#include "support/message.h"

namespace stretto {
namespace {

// Gradient of the loss with respect to w[i] is 2 · w[i] · c[i]: simple enough to follow by hand.
const std::vector<double> weights{0.5, -1.25, 2.0, 0.75}, curve{1.0, 0.5, 0.25, 2.0};

Model bowl(double decay, double lr_scale = 1) {
  return [=](Trace& t) {
    const Dim rows = t.batch("batch", 1), in{"in", 4};
    const Tensor c = t.input("c", {rows, in});
    const Tensor w = t.param("w", {in}, {.init = zeros, .decay = decay, .lr_scale = lr_scale});
    return ratio_of(sum(c * square(w), {rows, in}), t.constant(1));
  };
}

std::vector<double> train(const Optimizer& o, int steps, double decay = 1, double lr_scale = 1, double clip = 0) {
  Trainer trainer(compile(bowl(decay, lr_scale), o, {.dtype = f64, .clip = clip}));
  trainer.set_parameter("w", Array::of<double>(weights, {4}));
  for (int i = 0; i < steps; ++i) trainer.step({{"c", Array::of<double>(curve, {1, 4})}});
  return trainer.parameter("w").doubles();
}

template <class Update>
std::vector<double> by_hand(int steps, Update update, double clip = 0) {
  std::vector<double> w = weights;
  for (int t = 1; t <= steps; ++t) {
    std::vector<double> g;
    double norm = 0;
    for (std::size_t i = 0; i < w.size(); ++i) g.push_back(2 * w[i] * curve[i]), norm += g[i] * g[i];
    const double factor = clip > 0 ? std::min(1.0, clip / (std::sqrt(norm) + 1e-6)) : 1;
    for (std::size_t i = 0; i < w.size(); ++i) update(t, i, w[i], g[i] * factor);
  }
  return w;
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-12 * std::max(1.0, std::abs(b[i]))) << i;
}

TEST(Optimizer, SgdWithMomentumAndDecay) {
  for (bool nesterov : {false, true}) {
    std::vector<double> m(4, 0);
    const auto expected = by_hand(7, [&](int, std::size_t i, double& w, double g) {
      g += 0.01 * w;
      m[i] = 0.9 * m[i] + g;
      w -= 0.05 * (nesterov ? g + 0.9 * m[i] : m[i]);
    });
    expect_near(train(sgd({.lr = 0.05, .momentum = 0.9, .decay = 0.01, .nesterov = nesterov}), 7), expected);
  }
  expect_near(train(sgd({.lr = 0.05}), 3), by_hand(3, [](int, std::size_t, double& w, double g) { w -= 0.05 * g; }));
}

std::vector<double> adamw_by_hand(int steps, double lr, double decay, double clip = 0) {
  std::vector<double> m(4, 0), v(4, 0);
  return by_hand(
      steps,
      [&](int t, std::size_t i, double& w, double g) {
        m[i] = 0.9 * m[i] + 0.1 * g;
        v[i] = 0.95 * v[i] + 0.05 * g * g;
        w *= 1 - lr * decay;
        w -= lr * (m[i] / (1 - std::pow(0.9, t))) / (std::sqrt(v[i] / (1 - std::pow(0.95, t))) + 1e-8);
      },
      clip);
}

TEST(Optimizer, AdamW) {
  const Optimizer o = adamw({.lr = 0.03, .decay = 0.1});
  expect_near(train(o, 9), adamw_by_hand(9, 0.03, 0.1));
  expect_near(train(o, 9, 0), adamw_by_hand(9, 0.03, 0));  // the parameter states that it does not decay
  expect_near(train(o, 9, 0.25), adamw_by_hand(9, 0.03, 0.025));  // or less
  expect_near(train(o, 5, true, 0.5), adamw_by_hand(5, 0.015, 0.1));
  expect_near(train(o, 6, true, 1, 0.5), adamw_by_hand(6, 0.03, 0.1, 0.5));
}

TEST(Optimizer, Lion) {
  std::vector<double> m(4, 0);
  const auto expected = by_hand(6, [&](int, std::size_t i, double& w, double g) {
    const double c = 0.9 * m[i] + 0.1 * g;
    w *= 1 - 0.01 * 0.1;
    w -= 0.01 * double((c > 0) - (c < 0));
    m[i] = 0.99 * m[i] + 0.01 * g;
  });
  expect_near(train(lion({.lr = 0.01, .decay = 0.1}), 6), expected);
}

TEST(Optimizer, OneOfOnesOwn) {
  const Optimizer mine{.name = "signs",
                       .update =
                           [](Trace& t, Slice s) {
                             s.param = s.param - cast(t.scalar("lr"), s.param.dtype()) * sign(s.grad);
                             return s;
                           },
                       .lr = constant_lr(0.125)};
  expect_near(train(mine, 3),
              by_hand(3, [](int, std::size_t, double& w, double g) { w -= 0.125 * double((g > 0) - (g < 0)); }));
}

TEST(Optimizer, StateThatTheUpdateLeavesAlone) {
  const Optimizer lazy{.name = "lazy",
                       .state = {"m", "spare"},
                       .update =
                           [](Trace& t, Slice s) {
                             s.state["m"] = s.state["m"] * 0.5 + s.grad;
                             s.param = s.param - cast(t.scalar("lr"), s.param.dtype()) * s.state["m"];
                             return s;
                           },
                       .lr = constant_lr(0.125)};
  std::vector<double> m(4, 0);
  expect_near(train(lazy, 3), by_hand(3, [&](int, std::size_t i, double& w, double g) {
                m[i] = 0.5 * m[i] + g;
                w -= 0.125 * m[i];
              }));
}

TEST(Optimizer, UpdateThatLeavesEverythingAlone) {
  expect_near(train({.name = "frozen", .state = {"m"}, .update = [](Trace&, Slice s) { return s; }}, 2), weights);
}

TEST(Optimizer, StatesThatHandOnAndStatesThatAreTheSame) {
  const Optimizer odd{.name = "odd",
                      .state = {"a", "b", "c", "d"},
                      .update =
                          [](Trace& t, Slice s) {  // b, c and d are the last gradient, a is the one before it
                            s.param = s.param - cast(t.scalar("lr"), s.param.dtype()) * (s.state["a"] + s.state["c"]);
                            s.state["a"] = s.state["b"];
                            s.state["b"] = s.state["c"] = s.state["d"] = s.grad;
                            return s;
                          },
                      .lr = constant_lr(0.125)};
  std::vector<double> last(4, 0), before(4, 0);
  expect_near(train(odd, 5), by_hand(5, [&](int, std::size_t i, double& w, double g) {
                w -= 0.125 * (before[i] + last[i]);
                before[i] = last[i], last[i] = g;
              }));
}

std::string refusal(const Optimizer& o) {
  return refusal_of([&] { compile(bowl(true), o); });
}

TEST(Optimizer, MistakesAreNamed) {
  EXPECT_EQ(refusal({.name = "mine", .state = {"m"}, .update = [](Trace&, Slice s) { return s.state.clear(), s; }}),
            "[optimizer] 'mine' returns no new state 'm'; hint: set slice.state[\"m\"] in update()");
  EXPECT_EQ(
      refusal({.name = "mine",
               .update = [](Trace& t, Slice s) { return s.param = s.param * cast(t.scalar("heat"), f32), s; }}),
      "[optimizer] 'mine' asks for the scalar 'heat', which nobody sets; hint: 'lr' and 'step' are set each step");
  EXPECT_EQ(refusal({.name = "mine", .update = [](Trace&, Slice s) { return s.param = Tensor{}, s; }}),
            "[optimizer] 'mine' returns no new parameter; hint: set slice.param in update()");
}

TEST(LearningRate, Shapes) {
  const LrShape s{.peak = 2, .warmup = 10, .steps = 110, .floor = 0.1, .stable = 0.5};
  for (const char* name : {"constant", "cosine", "linear", "wsd"}) {
    const LearningRate lr = lr_named(name, s);
    EXPECT_DOUBLE_EQ(lr(5), 1.0) << name;
    EXPECT_DOUBLE_EQ(lr(10), 2.0) << name;
  }
  EXPECT_DOUBLE_EQ(lr_named("constant", s)(110), 2.0);
  EXPECT_NEAR(cosine_lr(s)(60), 2 * (0.1 + 0.9 * 0.5), 1e-12);
  EXPECT_NEAR(cosine_lr(s)(110), 0.2, 1e-12);
  EXPECT_NEAR(linear_lr(s)(60), 2 * (0.1 + 0.9 * 0.5), 1e-12);
  EXPECT_NEAR(linear_lr(s)(200), 0.2, 1e-12);
  EXPECT_DOUBLE_EQ(wsd_lr(s)(50), 2.0);
  EXPECT_NEAR(wsd_lr(s)(110), 0.2, 1e-12);
  try {
    lr_named("cosin", s);
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), testing::StartsWith("[optimizer] there is no learning-rate schedule 'cosin'; hint: did you "
                                              "mean 'cosine'? known are constant, "));
  }
}

}  // namespace
}  // namespace stretto
