#include "stretto/kernels/cpu/product_forms.h"

#include <algorithm>
#include <cmath>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace stretto {
namespace {

// Any processor: as many numbers as NEON has in a register.
template <class T>
struct Plain {
  using number = T;
  typedef T type __attribute__((vector_size(16)));
  static constexpr int lanes = int(16 / sizeof(T));
  static type zero() { return type{}; }
  static type all(T x) { return x - type{}; }
  static type load(const T* p) {
    type v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }
  static void store(T* p, type v) { __builtin_memcpy(p, &v, sizeof v); }
  static type multiply_add(type a, type b, type c) {
    for (int i = 0; i < lanes; ++i) c[i] = std::fma(a[i], b[i], c[i]);
    return c;
  }
  static type plus(type a, type b) { return a + b; }
};
namespace plain {
#define STRETTO_TILE_TARGET
#include "stretto/kernels/cpu/product_tile.def"
#undef STRETTO_TILE_TARGET
}  // namespace plain

#if defined(__x86_64__)
#define FOR_AVX2 __attribute__((target("avx2,fma"), always_inline)) static inline
struct Avx2f {
  using number = float;
  using type = __m256;
  static constexpr int lanes = 8;
  FOR_AVX2 type zero() { return _mm256_setzero_ps(); }
  FOR_AVX2 type all(float x) { return _mm256_set1_ps(x); }
  FOR_AVX2 type load(const float* p) { return _mm256_loadu_ps(p); }
  FOR_AVX2 void store(float* p, type v) { _mm256_storeu_ps(p, v); }
  FOR_AVX2 type multiply_add(type a, type b, type c) { return _mm256_fmadd_ps(a, b, c); }
  FOR_AVX2 type plus(type a, type b) { return _mm256_add_ps(a, b); }
};
struct Avx2d {
  using number = double;
  using type = __m256d;
  static constexpr int lanes = 4;
  FOR_AVX2 type zero() { return _mm256_setzero_pd(); }
  FOR_AVX2 type all(double x) { return _mm256_set1_pd(x); }
  FOR_AVX2 type load(const double* p) { return _mm256_loadu_pd(p); }
  FOR_AVX2 void store(double* p, type v) { _mm256_storeu_pd(p, v); }
  FOR_AVX2 type multiply_add(type a, type b, type c) { return _mm256_fmadd_pd(a, b, c); }
  FOR_AVX2 type plus(type a, type b) { return _mm256_add_pd(a, b); }
};
namespace avx2 {
#define STRETTO_TILE_TARGET __attribute__((target("avx2,fma")))
#include "stretto/kernels/cpu/product_tile.def"
#undef STRETTO_TILE_TARGET
}  // namespace avx2

#define FOR_AVX512 __attribute__((target("avx512f"), always_inline)) static inline
struct Avx512f {
  using number = float;
  using type = __m512;
  static constexpr int lanes = 16;
  FOR_AVX512 type zero() { return _mm512_setzero_ps(); }
  FOR_AVX512 type all(float x) { return _mm512_set1_ps(x); }
  FOR_AVX512 type load(const float* p) { return _mm512_loadu_ps(p); }
  FOR_AVX512 void store(float* p, type v) { _mm512_storeu_ps(p, v); }
  FOR_AVX512 type multiply_add(type a, type b, type c) { return _mm512_fmadd_ps(a, b, c); }
  FOR_AVX512 type plus(type a, type b) { return _mm512_add_ps(a, b); }
};
struct Avx512d {
  using number = double;
  using type = __m512d;
  static constexpr int lanes = 8;
  FOR_AVX512 type zero() { return _mm512_setzero_pd(); }
  FOR_AVX512 type all(double x) { return _mm512_set1_pd(x); }
  FOR_AVX512 type load(const double* p) { return _mm512_loadu_pd(p); }
  FOR_AVX512 void store(double* p, type v) { _mm512_storeu_pd(p, v); }
  FOR_AVX512 type multiply_add(type a, type b, type c) { return _mm512_fmadd_pd(a, b, c); }
  FOR_AVX512 type plus(type a, type b) { return _mm512_add_pd(a, b); }
};
namespace avx512 {
#define STRETTO_TILE_TARGET __attribute__((target("avx512f")))
#include "stretto/kernels/cpu/product_tile.def"
#undef STRETTO_TILE_TARGET
}  // namespace avx512
#endif

// A form whose tiles have 1, 2, ... rows and one or two registers of columns.
#define STRETTO_PRODUCT_FORM(name, runs, from, W, most)                                                              \
  []<int... r>(std::integer_sequence<int, r...>) {                                                                   \
    return ProductForm<typename W::number>{                                                                          \
        name, runs, most, W::lanes, {{from::multiply_tile<W, r + 1, 1>...}, {from::multiply_tile<W, r + 1, 2>...}}}; \
  }                                                                                                                  \
  (std::make_integer_sequence<int, most>())

constexpr ProductForm<float> forms_f32[] = {
#if defined(__x86_64__)
    STRETTO_PRODUCT_FORM(
        "avx512", [](const Processor& p) { return p.avx512; }, avx512, Avx512f, 12),
    STRETTO_PRODUCT_FORM(
        "avx2", [](const Processor& p) { return p.avx2 && p.fma; }, avx2, Avx2f, 6),
#endif
    STRETTO_PRODUCT_FORM(
        "plain", [](const Processor&) { return true; }, plain, Plain<float>, 6),
};
constexpr ProductForm<double> forms_f64[] = {
#if defined(__x86_64__)
    STRETTO_PRODUCT_FORM(
        "avx512", [](const Processor& p) { return p.avx512; }, avx512, Avx512d, 12),
    STRETTO_PRODUCT_FORM(
        "avx2", [](const Processor& p) { return p.avx2 && p.fma; }, avx2, Avx2d, 6),
#endif
    STRETTO_PRODUCT_FORM(
        "plain", [](const Processor&) { return true; }, plain, Plain<double>, 6),
};

template <class T>
const ProductForm<T>& first_that_runs() {
  const Processor here = usable_processor();
  return *std::ranges::find_if(product_forms<T>(), [&](const ProductForm<T>& f) { return f.runs(here); });
}

}  // namespace

template <>
std::span<const ProductForm<float>> product_forms() {
  return forms_f32;
}
template <>
std::span<const ProductForm<double>> product_forms() {
  return forms_f64;
}
template <class T>
const ProductForm<T>& product_form() {
  static const ProductForm<T>& form = first_that_runs<T>();
  return form;
}
template const ProductForm<float>& product_form();
template const ProductForm<double>& product_form();

}  // namespace stretto
