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
//
// One that looks at whole matrices: `matrices = true`, and where slice.matrix is there,
//
//     s.param = s.param - lr * s.part(nearly_orthogonal(s.whole(s.grad), *s.matrix));
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stretto/optim/lr.h"
#include "stretto/trace/trace.h"

namespace stretto {

// A parameter that is multiplied with: the dims that are summed over, those that come out, and those that it has a
// matrix for each of.
struct MatrixDims {
  Dims rows, columns, batch;  // {model}, {heads head}, {experts}
  bool operator==(const MatrixDims&) const = default;
};

struct Slice {  // one parameter: the part that a rank updates, as rows of numbers
  Tensor param, grad;
  std::map<std::string, Tensor> state;
  double decay = 1;     // a factor, as the parameter states it
  double lr_scale = 1;  // likewise
  std::string rate = "lr";
  // Where the optimizer wants whole matrices and the parameter is one: its dims; a slice put together from all ranks,
  // in these dims; and this rank's part of such a one again.
  std::optional<MatrixDims> matrix = {};
  std::function<Tensor(Tensor slice)> whole = {};
  std::function<Tensor(Tensor whole)> part = {};
};

struct Optimizer {
  std::string name;
  std::vector<std::string> state = {};
  std::function<Slice(Trace&, Slice)> update;  // t.scalar(slice.rate) and t.scalar("step") (from 1) are there
  LearningRate lr = constant_lr(1e-3);
  // Wants whole matrices, but for those that these name (names, parts of them or globs); and has so many states of one:
  // those that update() returns as they came have no memory then.
  bool matrices = false;
  std::vector<std::string> numbers = {};
  int matrix_states = 0;
  // bf16: states are kept in it, rounded at random to either side; update() sees f32
  DType state_dtype = f32;
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
