// Optimizers, written with the same Tensor functions as models. Smallest use:
//
//   compile(model, adamw({.lr = 1e-3}), ...)
//
// One of one's own: name its state, and return the new parameter and state.
//
//   Optimizer sign_descent{.name = "signs", .update = [](Trace& t, Slice s) {
//     s.param = s.param - cast(t.scalar(s.rate), s.param.dtype()) * sign(s.grad);
//     return s;
//   }};
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "stretto/optim/lr.h"
#include "stretto/trace/trace.h"

namespace stretto {

struct Slice {  // one parameter, flat
  Tensor param, grad;
  std::map<std::string, Tensor> state;
  double decay = 1;     // a factor, as the parameter states it
  double lr_scale = 1;  // likewise
  std::string rate = "lr";
};

struct Optimizer {
  std::string name;
  std::vector<std::string> state = {};
  std::function<Slice(Trace&, Slice)> update;  // t.scalar(slice.rate) and t.scalar("step") (from 1) are there
  LearningRate lr = constant_lr(1e-3);
  DType state_dtype = f32;  // bf16: states are kept in it, rounded at random to either side; update() sees f32
};

struct Sgd {
  double lr = 0.1, momentum = 0, decay = 0;
  bool nesterov = false;
};
struct AdamW {
  double lr = 3e-4, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, decay = 0.1;
};
struct Lion {
  double lr = 1e-4, beta1 = 0.9, beta2 = 0.99, decay = 0.1;
};
Optimizer sgd(Sgd options = Sgd());
Optimizer adamw(AdamW options = AdamW());
Optimizer lion(Lion options = Lion());
Optimizer with_lr(Optimizer o, LearningRate lr);

// One more state, the running average of the parameter after every update: ema = decay · ema + (1 - decay) · param. It
// is zero at first, as all states are; set it to the parameter before the first step.
inline constexpr const char* ema_state = "ema";
Optimizer with_ema(Optimizer o, double decay);

}  // namespace stretto
