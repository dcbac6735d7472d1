// An optimizer of one's own, written with the same Tensor functions as a model: AdaGrad. It is traced once per
// parameter and runs as fused kernels like the others.
#include <fmt/format.h>

#include <cmath>

#include "stretto/stretto.h"

using namespace stretto;

Optimizer adagrad(double rate) {
  return {.name = "adagrad",
          .state = {"sum"},
          .update =
              [](Trace& t, Slice s) {
                s.state["sum"] = s.state.at("sum") + square(s.grad);
                const Tensor lr = cast(t.scalar("lr") * s.lr_scale, s.param.dtype());
                s.param = s.param - lr * s.grad / (sqrt(s.state.at("sum")) + 1e-10);
                return s;
              },
          .lr = cosine_lr({.peak = rate, .warmup = 20, .steps = 300, .floor = 0.01})};
}

// Learns sin(3x) from 128 points.
Loss model(Trace& t) {
  const Dim batch = t.batch("batch", 128), in{"in", 1}, hidden{"hidden", 64};
  const Tensor x = t.input("x", {batch, in}), y = t.input("y", {batch});
  const Tensor h = tanh(contract(x, t.param("up", {in, hidden}, {.init = normal(2)}), in) +
                        t.param("up.bias", {hidden}, {.init = normal(1), .decay = false}));
  return mean_of(square(contract(h, t.param("down", {hidden}, {.init = fan_in(hidden)}), hidden) - y));
}

int main() try {
  std::vector<float> x(128), y(128);
  for (int i = 0; i < 128; ++i) {
    x[std::size_t(i)] = float(i - 64) / 64;
    y[std::size_t(i)] = std::sin(3 * x[std::size_t(i)]);
  }
  const Batch batch{{"x", Array::of<float>(x, {128, 1})}, {"y", Array::of<float>(y, {128})}};
  for (const Optimizer& optimizer : {adagrad(0.1), adamw({.lr = 0.01})}) {
    Trainer trainer(compile(model, optimizer));
    double loss = 0;
    for (int step = 1; step <= 300; ++step) loss = trainer.step(batch).loss;
    fmt::print("{:<12} loss after 300 steps {:.2e}\n", optimizer.name, loss);
  }
  return 0;
} catch (const Error& e) {
  fmt::print(stderr, "{}\n", e.what());
  return e.exit_code();
}
