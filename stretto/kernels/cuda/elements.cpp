#include "stretto/kernels/cuda/elements.h"

#include <map>

#include "stretto/ir/op.h"

namespace stretto {
namespace {

const std::map<std::string_view, std::string_view>& table() {
  static const std::map<std::string_view, std::string_view> all{
      {"add", "a + b"},
      {"cast", "cast_to<R>(a)"},
      {"copy", "a"},
      {"cos", "T(sine(double(a), 1))"},
      {"div", "a / b"},
      {"equal", "a == b"},
      {"erf", "erf(a)"},
      {"exp", "exp(a)"},
      {"gelu", "gelu(a)"},
      {"gelu_erf", "gelu_erf(a)"},
      {"gelu_erf_grad", "gelu_erf_grad(a, b)"},
      {"gelu_grad", "gelu_grad(a, b)"},
      {"greater", "a > b"},
      {"greater_equal", "a >= b"},
      {"less", "a < b"},
      {"less_equal", "a <= b"},
      {"log", "log(a)"},
      {"maximum", "a > b || a != a ? a : b"},
      {"minimum", "a < b || a != a ? a : b"},
      {"mul", "a * b"},
      {"neg", "-a"},
      {"not_equal", "a != b"},
      {"relu", "a > 0 || a != a ? a : T(0)"},
      {"rsqrt", "T(1) / sqrt(a)"},
      {"sigmoid", "sigmoid(a)"},
      {"sign", "T(a > 0) - T(a < 0)"},
      {"silu", "a * sigmoid(a)"},
      {"silu_grad", "b * sigmoid(a) * (T(1) + a * (T(1) - sigmoid(a)))"},
      {"sin", "T(sine(double(a), 0))"},
      {"sqrt", "sqrt(a)"},
      {"square", "a * a"},
      {"sub", "a - b"},
      {"tanh", "tanh(a)"},
      {"where", "a != 0 ? b : c"},
  };
  return all;
}

}  // namespace

std::string_view cuda_element(std::string_view op) {
  const auto it = table().find(op);
  return it == table().end() ? std::string_view() : it->second;
}
bool has_cuda_element(const Op& op) { return op.pointwise && !cuda_element(op.name).empty(); }

// gelu: x times sigmoid(w), w = 2 sqrt(2/pi) (x + 0.044715 x^3); beyond the bounds sigmoid is 0 or 1 in that type, and
// x is held there so that 0 is not multiplied by something huge. sine: a quarter turn's part is left of the angle, and
// its series; as exact as f64 up to some billions of turns.
std::string_view cuda_element_functions() {
  return R"cuda(
template <class R, class A> __device__ __forceinline__ R cast_to(A a) {
  if constexpr (sizeof(R) == 4 && R(0.5f) == R(0) && A(0.5f) != A(0)) return a >= A(-2147483648.) && a < A(2147483648.) ? R(a) : R(-2147483647 - 1);
  else return R(a);
}
template <class T> __device__ __forceinline__ T sigmoid(T x) { return T(1) / (T(1) + exp(-x)); }
template <class T> __device__ __forceinline__ T held(T x, T bound) { return x < -bound ? -bound : x > bound ? bound : x; }
template <class T> constexpr double bound_of = sizeof(T) == 4 ? 9.9 : 20.9;
constexpr double slope = 1.5957691216057308, cube = 0.044715, half_root = 0.70710678118654752;
template <class T> __device__ __forceinline__ T gelu(T x) {
  const T c = x < -T(bound_of<T>) ? -T(bound_of<T>) : x, h = c > T(bound_of<T>) ? T(bound_of<T>) : c;
  return c * sigmoid(h * (T(slope) + T(slope * cube) * h * h));
}
template <class T> __device__ __forceinline__ T gelu_grad(T x, T g) {
  const T c = held(x, T(bound_of<T>)), s = sigmoid(c * (T(slope) + T(slope * cube) * c * c));
  return g * (s + c * (s * (T(1) - s)) * (T(slope) + T(3 * slope * cube) * c * c));
}
template <class T> __device__ __forceinline__ T gelu_erf(T x) { return x * (T(0.5) + T(0.5) * erf(x * T(half_root))); }
template <class T> __device__ __forceinline__ T gelu_erf_grad(T x, T g) {
  const T c = held(x, T(100));
  return g * (T(0.5) + T(0.5) * erf(c * T(half_root)) + c * exp(T(-0.5) * c * c) * T(0.39894228040143268));
}
__device__ __forceinline__ double sine(double x, int quarters) {
  const double k = rint(x * 0.63661977236758138);
  double r = fma(-k, 1.5707963267948966, x);
  r = fma(-k, 6.123233995736766e-17, r);
  r = fma(-k, -1.4973849048591833e-33, r);
  const double q = r * r;
  double sin = 1. / 355687428096000., cos = 1. / 20922789888000.;
  sin = fma(sin, q, -1. / 1307674368000.), cos = fma(cos, q, -1. / 87178291200.);
  sin = fma(sin, q, 1. / 6227020800.), cos = fma(cos, q, 1. / 479001600.);
  sin = fma(sin, q, -1. / 39916800.), cos = fma(cos, q, -1. / 3628800.);
  sin = fma(sin, q, 1. / 362880.), cos = fma(cos, q, 1. / 40320.);
  sin = fma(sin, q, -1. / 5040.), cos = fma(cos, q, -1. / 720.);
  sin = fma(sin, q, 1. / 120.), cos = fma(cos, q, 1. / 24.);
  sin = fma(sin, q, -1. / 6.), cos = fma(cos, q, -1. / 2.);
  sin = fma(sin * q, r, r), cos = fma(cos, q, 1.);
  const i64 turn = ((i64)k + quarters) & 3;
  const double v = turn & 1 ? cos : sin;
  return turn & 2 ? -v : v;
}
)cuda";
}

}  // namespace stretto
