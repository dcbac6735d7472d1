#include "stretto/optim/optimizer.h"

#include <cmath>

#include "stretto/ops/add.h"
#include "stretto/ops/cast.h"
#include "stretto/ops/div.h"
#include "stretto/ops/exp.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/sign.h"
#include "stretto/ops/sqrt.h"
#include "stretto/ops/square.h"
#include "stretto/ops/sub.h"

namespace stretto {
namespace {

Tensor rate(Trace& t, const Slice& s) { return cast(t.scalar(s.rate) * s.lr_scale, s.param.dtype()); }

// Decoupled weight decay: param · (1 - lr · decay).
Tensor decayed(const Slice& s, Tensor lr, double decay) {
  decay *= s.decay;
  return decay != 0 ? s.param * (1.0 - lr * decay) : s.param;
}

// 1 - beta^step, in f64.
Tensor bias_correction(Trace& t, double beta) { return 1.0 - exp(t.scalar("step") * std::log(beta)); }

}  // namespace

Optimizer sgd(Sgd o) {
  Optimizer opt{.name = "sgd", .lr = constant_lr(o.lr)};
  if (o.momentum != 0) opt.state = {"momentum"};
  opt.update = [o](Trace& t, Slice s) {
    const Tensor lr = rate(t, s);
    Tensor step = s.grad;
    if (const double decay = o.decay * s.decay; decay != 0) step = step + s.param * decay;
    if (o.momentum != 0) {
      const Tensor m = s.state.at("momentum") * o.momentum + step;
      s.state["momentum"] = m;
      step = o.nesterov ? step + m * o.momentum : m;
    }
    s.param = s.param - lr * step;
    return s;
  };
  return opt;
}

Optimizer adamw(AdamW o) {
  Optimizer opt{.name = "adamw", .state = {"m", "v"}, .lr = constant_lr(o.lr)};
  opt.update = [o](Trace& t, Slice s) {
    const DType d = s.param.dtype();
    const Tensor lr = rate(t, s);
    const Tensor m = s.state.at("m") * o.beta1 + s.grad * (1 - o.beta1);
    const Tensor v = s.state.at("v") * o.beta2 + square(s.grad) * (1 - o.beta2);
    const Tensor size = cast(t.scalar(s.rate) * s.lr_scale / bias_correction(t, o.beta1), d);  // lr / (1 - beta1^t)
    const Tensor root = cast(1.0 / sqrt(bias_correction(t, o.beta2)), d);
    s.param = decayed(s, lr, o.decay) - size * (m / (sqrt(v) * root + o.eps));
    s.state["m"] = m;
    s.state["v"] = v;
    return s;
  };
  return opt;
}

Optimizer lion(Lion o) {
  Optimizer opt{.name = "lion", .state = {"m"}, .lr = constant_lr(o.lr)};
  opt.update = [o](Trace& t, Slice s) {
    const Tensor lr = rate(t, s), m = s.state.at("m");
    const Tensor direction = sign(m * o.beta1 + s.grad * (1 - o.beta1));
    s.param = decayed(s, lr, o.decay) - lr * direction;
    s.state["m"] = m * o.beta2 + s.grad * (1 - o.beta2);
    return s;
  };
  return opt;
}

Optimizer with_ema(Optimizer o, double decay) {
  o.state.emplace_back(ema_state);
  ++o.matrix_states;
  o.update = [inner = std::move(o.update), decay](Trace& t, Slice s) {
    const Tensor before = s.state.at(ema_state);
    Slice done = inner(t, std::move(s));
    if (done.param) done.state[ema_state] = before * decay + done.param * (1 - decay);
    return done;
  };
  return o;
}

Optimizer with_lr(Optimizer o, LearningRate lr) {
  o.lr = std::move(lr);
  return o;
}

}  // namespace stretto
