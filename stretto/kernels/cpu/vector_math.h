// Elementary functions without branches, for loops that the compiler vectorises:
//
//   for (i64 i = 0; i < n; ++i) y[i] = vm::exp(x[i]);
//
// f32: within 2 ulp; f64: within 1e-15 relative. Infinities, NaN, subnormal and huge arguments give what the C library
// gives. Every step is a correctly rounded operation, so the bits depend on the argument only, not on the vector width.
// The polynomials are minimax fits.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace stretto::vm {

#define STRETTO_INLINE inline __attribute__((always_inline))

template <class T>
struct Format;
template <>
struct Format<float> {
  using Bits = std::uint32_t;
  static constexpr int mantissa = 23;
  static constexpr Bits bias = 127;
  static constexpr float magic = 0x1.8p23f;  // adding it rounds to an integer, which is then in the low bits
  static constexpr float ln2_hi = 0x1.62e4p-1f, ln2_lo = 0x1.7f7d1cp-20f;
  static constexpr float exp_lo = -104, exp_hi = 90, tanh_one = 10;
};
template <>
struct Format<double> {
  using Bits = std::uint64_t;
  static constexpr int mantissa = 52;
  static constexpr Bits bias = 1023;
  static constexpr double magic = 0x1.8p52;
  static constexpr double ln2_hi = 0x1.62e42fefa38p-1, ln2_lo = 0x1.ef35793c7673p-45;
  static constexpr double exp_lo = -746, exp_hi = 710, tanh_one = 20;
};

template <class T>
STRETTO_INLINE T fma(T a, T b, T c) {
  if constexpr (std::is_same_v<T, float>)
    return __builtin_fmaf(a, b, c);
  else
    return __builtin_fma(a, b, c);
}

// Horner's scheme: c0 + x (c1 + x (c2 + ...)).
template <class T>
STRETTO_INLINE T polynomial(T, T c0) {
  return c0;
}
template <class T, class... C>
STRETTO_INLINE T polynomial(T x, T c0, T c1, C... more) {
  return fma(x, polynomial(x, c1, more...), c0);
}

template <class T>
STRETTO_INLINE T clamp(T x, T lo, T hi) {  // NaN stays NaN
  x = x < lo ? lo : x;
  return x > hi ? hi : x;
}

// 2^n for an integral n in the range of normal numbers.
template <class T>
STRETTO_INLINE T power_of_two(T n) {
  using F = Format<T>;
  return std::bit_cast<T>(std::bit_cast<typename F::Bits>(n + (F::magic + T(F::bias))) << F::mantissa);
}

// x = n ln 2 + r with |r| <= ln 2 / 2, and exp(r) - 1.
template <class T>
struct Reduced {
  T n, expm1;
};
template <class T>
STRETTO_INLINE Reduced<T> reduce_exp(T x) {
  using F = Format<T>;
  const T n = fma(x, T(1.442695040888963407), F::magic) - F::magic;
  const T r = fma(n, -F::ln2_lo, fma(n, -F::ln2_hi, x));
  T p;
  if constexpr (std::is_same_v<T, float>)
    p = polynomial(r, 0.4999999305f, 0.1666651479f, 0.04166845687f, 0.008369418724f, 0.001381313892f);
  else
    p = polynomial(r, 0.5000000000000011701, 0.166666666666663864, 0.04166666666651915593, 0.008333333333507592123,
                   0.001388888894691922888, 0.000198412694863138479, 2.480148935297308465e-5, 2.755759704970949431e-6,
                   2.763168712433127294e-7, 2.499903596777425464e-8);
  return {n, fma(r * r, p, r)};
}

template <class T>
STRETTO_INLINE T exp(T x) {
  using F = Format<T>;
  const auto [n, em1] = reduce_exp(clamp(x, F::exp_lo, F::exp_hi));
  // 2^n in two factors: n alone may lie outside of the range of normal numbers.
  const T half = fma(n, T(0.5), F::magic) - F::magic;
  const T a = power_of_two(half), b = power_of_two(n - half);
  return fma(em1, a, a) * b;
}

template <class T>
STRETTO_INLINE T sigmoid(T x) {
  const T e = exp(x < 0 ? x : -x);  // at most 1
  return (x < 0 ? e : T(1)) / (1 + e);
}

// The same for arguments whose exp is a normal number (f32: within ±87, f64: ±708), without a clamp of its own.
template <class T>
STRETTO_INLINE T normal_sigmoid(T x) {
  const auto [n, em1] = reduce_exp(-x);
  const T two_n = power_of_two(n);
  return 1 / (1 + fma(two_n, em1, two_n));
}

// For any argument: beyond, 1e-38 (f32) stands for 0. For products that are negligible there.
template <class T>
STRETTO_INLINE T bounded_sigmoid(T x) {
  constexpr T bound = std::is_same_v<T, float> ? T(87) : T(708);
  return normal_sigmoid(clamp(x, -bound, bound));
}

template <class T>
STRETTO_INLINE T tanh(T x) {
  using F = Format<T>;
  const T a = std::fabs(x);
  const auto [n, em1] = reduce_exp(2 * (a > F::tanh_one ? F::tanh_one : a));
  const T two_n = power_of_two(n);
  const T e = fma(two_n, em1, two_n - 1);  // exp(2|x|) - 1
  return std::copysign(e / (e + 2), x);
}

template <class T>
STRETTO_INLINE T log(T x) {
  using F = Format<T>;
  using Bits = typename F::Bits;
  constexpr T smallest = std::numeric_limits<T>::min(), infinity = std::numeric_limits<T>::infinity();
  const bool subnormal = x < smallest;
  const Bits bits = std::bit_cast<Bits>(subnormal ? x * T(Bits(1) << F::mantissa) : x);
  // x = 2^e m with m in [sqrt 1/2, sqrt 2).
  constexpr Bits root = std::bit_cast<Bits>(T(0.70710678118654752440));
  const Bits shifted = bits - root + (F::bias << F::mantissa);
  const Bits exponent = shifted >> F::mantissa;
  const T m = std::bit_cast<T>(bits - ((exponent - F::bias) << F::mantissa));
  constexpr T two_mantissa = T(Bits(1) << F::mantissa);
  const T e = std::bit_cast<T>(std::bit_cast<Bits>(two_mantissa) | exponent) -
              (two_mantissa + T(F::bias) + (subnormal ? T(F::mantissa) : T(0)));
  const T f = m - 1, s = f / (2 + f), z = s * s;  // log m = 2 artanh s = f - s (f - z R(z))
  T r;
  if constexpr (std::is_same_v<T, float>)
    r = polynomial(z, 0.666666656f, 0.4000034557f, 0.285366028f, 0.2359633447f);
  else
    r = polynomial(z, 0.666666666666666605, 0.4000000000000670161, 0.2857142856894013092, 0.2222222266876811289,
                   0.1818177390621467939, 0.1538716772450512972, 0.1324838182917159594, 0.132671240845087343);
  const T t = s * fma(-z, r, f);
  T y = fma(e, F::ln2_hi, f - fma(-e, F::ln2_lo, t));
  y = x == infinity ? x : y;
  y = x == 0 ? -infinity : y;
  return x >= 0 ? y : std::numeric_limits<T>::quiet_NaN();
}

STRETTO_INLINE float erf(float x) {
  const float a = std::fabs(x), z = a * a;
  const float small = fma(x,
                          polynomial(z, 0.1283791671f, -0.3761263843f, 0.1128378197f, -0.02686540004f, 0.005220945432f,
                                     -0.0008482828852f, 0.0001125694809f, -9.641516948e-6f),
                          x);
  const float l = polynomial(a > 4 ? 4.0f : a, -0.000188035982f, 1.129578405f, 0.6332199281f, 0.1084185417f,
                             -0.0252082354f, 0.004204554358f, -0.0004413349353f, 2.168673382e-5f);  // -log erfc a
  return a < 1 ? small : std::copysign(1 - exp(-l), x);
}
STRETTO_INLINE double erf(double x) {
  const double a = std::fabs(x), z = a * a;
  const double small =
      fma(x,
          polynomial(z, 0.1283791670955125738, -0.3761263890318374818, 0.1128379167095488447, -0.02686617064507787515,
                     0.00522397762482843067, -0.0008548326981425542087, 0.0001205533113295581959,
                     -0.00001492559577218090534, 1.646100847780270132e-6, -1.635039622286461626e-7,
                     1.466032872274225954e-8, -1.13749557360701496e-9, 5.960685338520971033e-11),
          x);
  const double l =
      polynomial((a > 5.93 ? 5.93 : a) - 3, 10.72036304198085032, 6.303753689003119617, 0.957394218820914928,
                 0.007411891877282724, -0.001353310428275948412, 0.0002456916160581402824, -0.00004308278768520101444,
                 7.115363093511937845e-6, -1.067607483665017226e-6, 1.383162866691721987e-7, -1.116048975688345012e-8,
                 -1.961162235143643587e-9, -5.552544263786173187e-10, -4.31159874935908875e-10, 2.43612842929451329e-10,
                 1.472567058430407351e-10, 4.608766473450216811e-11,
                 4.865285178220194307e-12);  // -log erfc a
  return a < 1 ? small : std::copysign(1 - exp(-l), x);
}

}  // namespace stretto::vm
