#include "stretto/kernels/peak.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "stretto/kernels/cpu/bf16_tiles.h"
#include "stretto/kernels/cpu/multiply.h"
#include "stretto/kernels/cpu/products.h"

namespace stretto {
namespace {

constexpr i64 peak_size = 256;  // large enough for whole tiles, small enough to stay in the cache
constexpr int peak_tries = 12;

// The best of a few: whatever else runs on the core only makes it slower.
template <class F>
double best_rate(const F& product) {
  double best = 0;
  for (int i = 0; i < peak_tries; ++i) {
    const auto start = std::chrono::steady_clock::now();
    product();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, 2.0 * peak_size * peak_size * peak_size / std::max(seconds, 1e-9));
  }
  return best;
}

template <class T>
double measured_peak() {
  reserve_products(1);
  const std::vector<T> a(peak_size * peak_size, T(0.5)), b(peak_size * peak_size, T(0.25));
  std::vector<T> c(peak_size * peak_size);
  return best_rate([&] {
    gemm(false, false, peak_size, peak_size, peak_size, a.data(), peak_size, b.data(), peak_size, false, c.data(),
         peak_size);
  });
}

double measured_peak_of_tiles() {
  const std::vector<BF16> packed(bf16_packed(peak_size, peak_size), BF16(0.5f));
  float sum = 0;
  return best_rate([&] {
    bf16_multiply(peak_size, peak_size, peak_size, packed.data(), packed.data(),
                  [&](const Bf16Square& r) { sum += r.sums[0]; });
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
