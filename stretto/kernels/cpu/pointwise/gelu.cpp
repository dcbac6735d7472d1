#include <numbers>

#include "stretto/kernels/cpu/pointwise/pointwise.h"
#include "stretto/kernels/cpu/vector_math.h"

namespace stretto {
namespace {

constexpr double cube = 0.044715;
constexpr double slope = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // 2 sqrt(2/π)

// x Φ(x) in its tanh form is x σ(w) with w = 2 sqrt(2/π) (x + cube x³). Beyond ±bound σ is 0 and 1 as far as the type
// can tell, and exp(-w) is still a normal number; x is clamped there so that 0 is not multiplied by something huge.
template <class T>
constexpr T bound = std::is_same_v<T, float> ? T(9.9) : T(20.9);

template <class T>
STRETTO_INLINE T sigmoid_of_w(T c) {
  return vm::normal_sigmoid(c * vm::fma(c * c, T(slope * cube), T(slope)));
}
constexpr auto gelu = [](auto x) {
  using T = decltype(x);
  const T c = x < -bound<T> ? -bound<T> : x;
  return c * sigmoid_of_w(c > bound<T> ? bound<T> : c);
};
constexpr auto gelu_grad = [](auto x, auto g) {
  using T = decltype(x);
  const T c = vm::clamp(x, -bound<T>, bound<T>), s = sigmoid_of_w(c);
  const T derivative_w = vm::fma(c * c, T(3 * slope * cube), T(slope));
  return g * vm::fma(c * (s * (1 - s)), derivative_w, s);
};

// Φ(x) = (1 + erf(x / √2)) / 2
constexpr auto gelu_erf = [](auto x) {
  using T = decltype(x);
  return x * vm::fma(T(0.5), vm::erf(x * T(1 / std::numbers::sqrt2)), T(0.5));
};
constexpr auto gelu_erf_grad = [](auto x, auto g) {
  using T = decltype(x);
  const T c = vm::clamp(x, T(-100), T(100));
  const T density = vm::exp(T(-0.5) * c * c) * T(std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  const T below = vm::fma(T(0.5), vm::erf(c * T(1 / std::numbers::sqrt2)), T(0.5));
  return g * vm::fma(c, density, below);
};

}  // namespace

Tile gelu_tile(std::span<const DType> in, DType out) { return unary_tile<gelu>(in, out); }
Tile gelu_grad_tile(std::span<const DType> in, DType out) { return float_binary_tile<gelu_grad>(in, out); }
Tile gelu_erf_tile(std::span<const DType> in, DType out) { return unary_tile<gelu_erf>(in, out); }
Tile gelu_erf_grad_tile(std::span<const DType> in, DType out) { return float_binary_tile<gelu_erf_grad>(in, out); }

}  // namespace stretto
