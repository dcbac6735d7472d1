#include "stretto/kernels/cpu/peak.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "stretto/kernels/cpu/bf16_tiles.h"
#include "stretto/kernels/cpu/blas.h"
#include "stretto/kernels/cpu/products.h"

namespace stretto {
namespace {

constexpr i64 kSize = 256;  // large enough for the library's best loops, small enough to stay in the cache
constexpr int kTries = 12;

// The best of a few: whatever else runs on the core only makes it slower.
template <class F>
double best_rate(const F& product) {
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    const auto start = std::chrono::steady_clock::now();
    product();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, 2.0 * kSize * kSize * kSize / std::max(seconds, 1e-9));
  }
  return best;
}

template <class T>
double measured_peak() {
  reserve_products(1);
  const std::vector<T> a(kSize * kSize, T(0.5)), b(kSize * kSize, T(0.25));
  std::vector<T> c(kSize * kSize);
  return best_rate(
      [&] { gemm(false, false, kSize, kSize, kSize, T(1), a.data(), kSize, b.data(), kSize, T(0), c.data(), kSize); });
}

double measured_peak_of_tiles() {
  const std::vector<BF16> packed(bf16_packed(kSize, kSize), BF16(0.5f));
  float sum = 0;
  return best_rate([&] {
    bf16_multiply(kSize, kSize, kSize, packed.data(), packed.data(), [&](const Bf16Square& r) { sum += r.sums[0]; });
  });
}

}  // namespace

double peak_flops(DType dtype) {
  if (dtype == bf16 && !bf16_form().empty()) {
    static const double tiles = measured_peak_of_tiles();
    return tiles;
  }
  static const double single = measured_peak<float>();
  if (dtype != f64) return single;
  static const double twice = measured_peak<double>();
  return twice;
}

}  // namespace stretto
