// Accuracy of the vectorised functions over the whole range of their arguments, through the kernels that use them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "stretto/kernels/kernel.h"
#include "stretto/ops/ops.h"

namespace stretto {
namespace {

struct alignas(64) Block {
  float x[512], y[512];
};

double ulp_of(float v) {
  const float a = std::abs(v);
  return std::max(double(std::nextafter(a, std::numeric_limits<float>::infinity())) - double(a), 0x1p-149);
}

// Every 9973rd bit pattern of f32, specials included, against the C library's f64.
template <class F>
double worst_ulp(const Op& op, const F& exact) {
  const DType types[] = {f32};
  const Tile tile = cpu_tile(op, types, f32);
  Block b;
  double worst = 0;
  const float specials[] = {0.0f,   -0.0f,  1.0f,    -1.0f,  INFINITY, -INFINITY, NAN,     3e38f,
                            -3e38f, 1e-45f, -1e-45f, 88.72f, 88.73f,   -103.9f,   -104.1f, 1e-38f};
  u64 bits = 0;
  for (bool last = false; !last;) {
    for (std::size_t i = 0; i < 512; ++i, bits += 9973) {
      const std::uint32_t low = std::uint32_t(bits);
      std::memcpy(&b.x[i], &low, 4);
      if (bits < 512) b.x[i] = specials[i % std::size(specials)];
    }
    for (std::size_t i = 0; i < std::size(specials); ++i) b.x[i] = specials[i];
    last = bits > 0xFFFFFFFFull;
    const void* in[] = {b.x};
    tile(b.y, in, 512);
    for (std::size_t i = 0; i < 512; ++i) {
      const double e = exact(double(b.x[i]));
      const float rounded = float(e);
      if (std::isnan(rounded) || std::isinf(rounded) || std::isnan(b.y[i]) || std::isinf(b.y[i])) {
        EXPECT_TRUE(std::isnan(rounded) ? std::isnan(b.y[i]) : rounded == b.y[i])
            << op.name << "(" << b.x[i] << ") is " << b.y[i] << ", should be " << rounded;
        continue;
      }
      worst = std::max(worst, std::abs(double(b.y[i]) - e) / ulp_of(rounded));
    }
  }
  return worst;
}

TEST(Elementary, SinglePrecisionIsWithinTwoAndAHalfUlp) {
  EXPECT_LE(worst_ulp(exp_op, [](double x) { return std::exp(x); }), 1.0);
  EXPECT_LE(worst_ulp(log_op, [](double x) { return std::log(x); }), 1.0);
  EXPECT_LE(worst_ulp(tanh_op, [](double x) { return std::tanh(x); }), 2.5);
  EXPECT_LE(worst_ulp(sigmoid_op, [](double x) { return 1 / (1 + std::exp(-x)); }), 2.5);
  EXPECT_LE(worst_ulp(erf_op, [](double x) { return std::erf(x); }), 2.5);
  EXPECT_LE(worst_ulp(sin_op, [](double x) { return std::sin(x); }), 0.5);
  EXPECT_LE(worst_ulp(cos_op, [](double x) { return std::cos(x); }), 0.5);
  EXPECT_LE(worst_ulp(sqrt_op, [](double x) { return std::sqrt(x); }), 0.5);
  EXPECT_LE(worst_ulp(rsqrt_op, [](double x) { return 1 / std::sqrt(x); }), 1.5);
}

struct alignas(64) DoubleBlock {
  double x[16], y[16];
};

template <class F>
void check_double(const Op& op, const F& exact, double lo, double hi) {
  const DType types[] = {f64};
  const Tile tile = cpu_tile(op, types, f64);
  DoubleBlock b;
  for (int round = 0; round < 2000; ++round) {
    for (int i = 0; i < 16; ++i)
      b.x[i] = lo + (hi - lo) * std::fmod(0.6180339887498949 * double(round * 16 + i + 1), 1.0);
    const void* in[] = {b.x};
    tile(b.y, in, 16);
    for (int i = 0; i < 16; ++i) {
      const double e = exact(b.x[i]);
      ASSERT_LE(std::abs(b.y[i] - e), 1e-15 * std::abs(e)) << op.name << "(" << b.x[i] << ")";
    }
  }
}

TEST(Elementary, DoublePrecisionIsWithin1e15) {
  check_double(
      exp_op, [](double x) { return std::exp(x); }, -700, 700);
  check_double(
      log_op, [](double x) { return std::log(x); }, 1e-300, 10);
  check_double(
      log_op, [](double x) { return std::log(x); }, 0.9, 1.1);
  check_double(
      tanh_op, [](double x) { return std::tanh(x); }, -25, 25);
  check_double(
      tanh_op, [](double x) { return std::tanh(x); }, -1e-3, 1e-3);
  check_double(
      sigmoid_op, [](double x) { return 1 / (1 + std::exp(-x)); }, -700, 40);
  check_double(
      erf_op, [](double x) { return std::erf(x); }, -7, 7);
  check_double(
      erf_op, [](double x) { return std::erf(x); }, 0.999, 1.001);
  check_double(
      erf_op, [](double x) { return std::erf(x); }, -1e-300, 1e-300);
}

TEST(Elementary, ErfOfWhatIsHugeOrNoNumber) {
  const DType types[] = {f64};
  DoubleBlock b = {.x = {INFINITY, -INFINITY, NAN, 1e300, -1e300, 5.93, -0.0}, .y = {}};
  const void* in[] = {b.x};
  cpu_tile(erf_op, types, f64)(b.y, in, 16);
  EXPECT_TRUE(std::isnan(b.y[2]));
  for (const int i : {0, 1, 3, 4, 5, 6}) EXPECT_EQ(b.y[i], std::erf(b.x[i])) << b.x[i];
  EXPECT_TRUE(std::signbit(b.y[6]));
}

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

TEST(Elementary, GeluIsAccurateFarOut) {
  const DType types[] = {f32};
  const Tile tanh_form = cpu_tile(gelu_op, types, f32), erf_form = cpu_tile(gelu_erf_op, types, f32);
  Block b;
  for (std::size_t i = 0; i < 512; ++i) b.x[i] = -6 + 12 * float(i) / 512;
  const void* in[] = {b.x};
  tanh_form(b.y, in, 512);
  for (std::size_t i = 0; i < 512; ++i) {
    const double x = b.x[i], w = 2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
    EXPECT_NEAR(b.y[i], x / (1 + std::exp(-w)), 3e-6 * std::abs(x / (1 + std::exp(-w)))) << x;  // relative, to -6
  }
  erf_form(b.y, in, 512);
  for (std::size_t i = 0; i < 512; ++i)
    EXPECT_NEAR(b.y[i], b.x[i] * normal_cdf(b.x[i]), 1e-6 + 3e-7 * std::abs(b.x[i])) << b.x[i];
  for (const Op* op : {&gelu_op, &silu_op}) {
    b.x[0] = 1e30f, b.x[1] = -1e30f, b.x[2] = INFINITY, b.x[3] = 0, b.x[4] = -INFINITY, b.x[5] = NAN;
    cpu_tile(*op, types, f32)(b.y, in, 16);
    EXPECT_EQ(b.y[0], 1e30f);
    EXPECT_NEAR(b.y[1], 0, 1e-34);
    EXPECT_EQ(b.y[2], INFINITY);
    EXPECT_EQ(b.y[3], 0);
    EXPECT_NEAR(b.y[4], 0, 1e-34);
    EXPECT_TRUE(std::isnan(b.y[5]));
  }
}

}  // namespace
}  // namespace stretto
