#include "stretto/ops/gelu.h"

#include <cmath>
#include <numbers>

#include "stretto/ops/add.h"
#include "stretto/ops/exp.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/sigmoid.h"
#include "stretto/ops/square.h"
#include "stretto/ops/sub.h"

namespace stretto {

Tensor gelu(Tensor x) { return builder_of("gelu", {x}).emit(gelu_op, {x}); }
Tensor gelu_erf(Tensor x) { return builder_of("gelu_erf", {x}).emit(gelu_erf_op, {x}); }
Tensor gelu_grad(Tensor x, Tensor g) { return builder_of("gelu_grad", {x, g}).emit(gelu_grad_op, {x, g}); }
Tensor gelu_erf_grad(Tensor x, Tensor g) { return builder_of("gelu_erf_grad", {x, g}).emit(gelu_erf_grad_op, {x, g}); }

namespace {

// gelu(x) = x σ(w), w = 2 sqrt(2/π) (x + a x³). With s = σ(w), d = s (1 - s):
// gelu'' = d (2 w' + x ((1 - 2s) w'² + w'')).
Tensor second_derivative(Tensor x) {
  const double c = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi, a = 0.044715;
  const Tensor xx = square(x), w1 = c + (3 * a * c) * xx;
  const Tensor s = sigmoid(x * (c + (a * c) * xx)), d = s * (1.0 - s);
  return d * (2.0 * w1 + x * ((1.0 - 2.0 * s) * square(w1) + (6 * a * c) * x));
}

// gelu_erf'' = φ(x) (2 - x²).
Tensor second_derivative_erf(Tensor x) {
  const double c = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return c * exp(-0.5 * square(x)) * (2.0 - square(x));
}

// gelu(x) = x/2 (1 + tanh(inner(x))); gelu_erf(x) = x P(a normal number is below x).
constexpr double root_2_over_pi = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
double inner(double x) { return root_2_over_pi * (x + 0.044715 * x * x * x); }
double normal_below(double x) { return 0.5 * (1 + std::erf(x / std::numbers::sqrt2)); }

}  // namespace

constinit const Op gelu_op{
    .name = "gelu",
    .infer = rules::float_unary,
    .vjp = [](const Vjp& v) { return std::vector{gelu_grad(v.in[0], v.grad[0])}; },
    .spread = rules::zero_of_zero<0>,
    .cost = rules::streaming<18>,
    .examples =
        [](Examples& e) {
          e.add(gelu(e.real({{"a", 3}, {"b", 4}}, -3, 3)));
          e.add(gelu(e.real({})));
        },
    .in_place = rules::first_in_place,
    .pointwise = true,
    .value = [](const double* x) { return 0.5 * x[0] * (1 + std::tanh(inner(x[0]))); },
};

constinit const Op gelu_grad_op{
    .name = "gelu_grad",
    .infer = rules::float_pointwise,
    .vjp =
        [](const Vjp& v) {
          return std::vector{v.wanted[0] ? v.grad[0] * v.in[1] * second_derivative(v.in[0]) : Tensor{},
                             v.wanted[1] ? gelu_grad(v.in[0], v.grad[0]) : Tensor{}};
        },
    .spread = rules::zero_of_zero<1>,
    .cost = rules::streaming<24>,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 4};
          e.add(gelu_grad(e.real({a, b}, -3, 3), e.real({a, b})));
        },
    .in_place = {InPlace{0, 0}, InPlace{1, 0}},
    .pointwise = true,
    .value =
        [](const double* x) {
          const double t = std::tanh(inner(x[0])), slope = root_2_over_pi * (1 + 3 * 0.044715 * x[0] * x[0]);
          return x[1] * (0.5 * (1 + t) + 0.5 * x[0] * (1 - t * t) * slope);
        },
};

constinit const Op gelu_erf_op{
    .name = "gelu_erf",
    .infer = rules::float_unary,
    .vjp = [](const Vjp& v) { return std::vector{gelu_erf_grad(v.in[0], v.grad[0])}; },
    .spread = rules::zero_of_zero<0>,
    .cost = rules::streaming<36>,
    .examples =
        [](Examples& e) {
          e.add(gelu_erf(e.real({{"a", 3}, {"b", 4}}, -3, 3)));
        },
    .in_place = rules::first_in_place,
    .pointwise = true,
    .value = [](const double* x) { return x[0] * normal_below(x[0]); },
};

constinit const Op gelu_erf_grad_op{
    .name = "gelu_erf_grad",
    .infer = rules::float_pointwise,
    .vjp =
        [](const Vjp& v) {
          return std::vector{v.wanted[0] ? v.grad[0] * v.in[1] * second_derivative_erf(v.in[0]) : Tensor{},
                             v.wanted[1] ? gelu_erf_grad(v.in[0], v.grad[0]) : Tensor{}};
        },
    .spread = rules::zero_of_zero<1>,
    .cost = rules::streaming<50>,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 4};
          e.add(gelu_erf_grad(e.real({a, b}, -3, 3), e.real({a, b})));
        },
    .in_place = {InPlace{0, 0}, InPlace{1, 0}},
    .pointwise = true,
    .value =
        [](const double* x) {
          const double density = std::exp(-x[0] * x[0] / 2) / std::sqrt(2 * std::numbers::pi);
          return x[1] * (normal_below(x[0]) + x[0] * density);
        },
};

}  // namespace stretto
