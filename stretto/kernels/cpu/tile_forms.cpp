#include "stretto/kernels/cpu/tile_forms.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "stretto/kernels/cpu/tiles.h"

namespace stretto {
namespace {

#if STRETTO_AVX2
template <class T>
using Register = Pack<T>;
#else
// Half a Pack: what does not fit into a register lies in memory.
template <class T>
struct Register {
  typedef T type __attribute__((vector_size(16)));
  static constexpr i64 lanes = i64(16 / sizeof(T));
  static type load(const T* p) {
    type v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static void store(T* p, type v) { std::memcpy(p, &v, sizeof v); }
  static type all(T x) { return x - type{}; }
  static type multiply_add(type a, type b, type c) {
#ifdef __FP_FAST_FMA
    for (i64 i = 0; i < lanes; ++i) c[i] = std::fma(a[i], b[i], c[i]);
    return c;
#else
    return a * b + c;
#endif
  }
};
#endif

template <class T, bool turned>
void product_of_packs(i64 k, const T* a, i64 pitch_a, const T* panel, T* c, i64 pitch_c, bool add) {
  using R = Register<T>;
  constexpr i64 vectors = panel_width<T> / R::lanes;
  typename R::type sum[tile_rows][vectors];
#pragma GCC unroll 6
  for (i64 r = 0; r < tile_rows; ++r)
#pragma GCC unroll 4
    for (i64 v = 0; v < vectors; ++v) sum[r][v] = R::all(0);
  for (i64 i = 0; i < k; ++i) {
    typename R::type row[vectors];
#pragma GCC unroll 4
    for (i64 v = 0; v < vectors; ++v) row[v] = R::load(panel + v * R::lanes);
#pragma GCC unroll 6
    for (i64 r = 0; r < tile_rows; ++r) {
      const typename R::type x = R::all(turned ? a[r] : a[r * pitch_a]);
#pragma GCC unroll 4
      for (i64 v = 0; v < vectors; ++v) sum[r][v] = R::multiply_add(x, row[v], sum[r][v]);
    }
    a += turned ? pitch_a : 1;
    panel += panel_width<T>;
  }
#pragma GCC unroll 6
  for (i64 r = 0; r < tile_rows; ++r)
#pragma GCC unroll 4
    for (i64 v = 0; v < vectors; ++v) {
      T* const to = c + r * pitch_c + v * R::lanes;
      R::store(to, add ? R::load(to) + sum[r][v] : sum[r][v]);
    }
}

#if STRETTO_AVX2
// These functions are compiled for more than the rest of this file.
#define FOR_AVX512 __attribute__((target("avx512f"), always_inline)) inline
struct Wide512f {
  using type = __m512;
  FOR_AVX512 static type zero() { return _mm512_setzero_ps(); }
  FOR_AVX512 static type all(float x) { return _mm512_set1_ps(x); }
  FOR_AVX512 static type load(const float* p) { return _mm512_loadu_ps(p); }
  FOR_AVX512 static void store(float* p, type v) { _mm512_storeu_ps(p, v); }
  FOR_AVX512 static type multiply_add(type a, type b, type c) { return _mm512_fmadd_ps(a, b, c); }
  FOR_AVX512 static type plus(type a, type b) { return _mm512_add_ps(a, b); }
};
struct Wide512d {
  using type = __m512d;
  FOR_AVX512 static type zero() { return _mm512_setzero_pd(); }
  FOR_AVX512 static type all(double x) { return _mm512_set1_pd(x); }
  FOR_AVX512 static type load(const double* p) { return _mm512_loadu_pd(p); }
  FOR_AVX512 static void store(double* p, type v) { _mm512_storeu_pd(p, v); }
  FOR_AVX512 static type multiply_add(type a, type b, type c) { return _mm512_fmadd_pd(a, b, c); }
  FOR_AVX512 static type plus(type a, type b) { return _mm512_add_pd(a, b); }
};

// A row of the panel is one register.
template <class W, class T, bool turned>
__attribute__((target("avx512f"))) void product_of_512(i64 k, const T* a, i64 pitch_a, const T* panel, T* c,
                                                       i64 pitch_c, bool add) {
  typename W::type sum[tile_rows];
#pragma GCC unroll 6
  for (i64 r = 0; r < tile_rows; ++r) sum[r] = W::zero();
  for (i64 i = 0; i < k; ++i) {
    const typename W::type row = W::load(panel);
#pragma GCC unroll 6
    for (i64 r = 0; r < tile_rows; ++r) sum[r] = W::multiply_add(W::all(turned ? a[r] : a[r * pitch_a]), row, sum[r]);
    a += turned ? pitch_a : 1;
    panel += panel_width<T>;
  }
#pragma GCC unroll 6
  for (i64 r = 0; r < tile_rows; ++r) {
    T* to = c + r * pitch_c;
    W::store(to, add ? W::plus(W::load(to), sum[r]) : sum[r]);
  }
}
#endif

bool has_avx512(const Processor& p) { return p.avx512; }
bool any_processor(const Processor&) { return true; }

template <class T, class W>
constexpr TileForm<T> forms_of[] = {
#if STRETTO_AVX2
    {"avx512", &has_avx512, &product_of_512<W, T, false>, &product_of_512<W, T, true>},
#endif
    {"packs", &any_processor, &product_of_packs<T, false>, &product_of_packs<T, true>},
};
#if !STRETTO_AVX2
using Wide512f = void;
using Wide512d = void;
#endif

template <class T>
const TileForm<T>& first_that_runs() {
  const Processor here = usable_processor();
  const std::span<const TileForm<T>> all = tile_forms<T>();
  return *std::ranges::find_if(all, [&](const TileForm<T>& f) { return f.runs(here); });
}

}  // namespace

template <>
std::span<const TileForm<float>> tile_forms() {
  return forms_of<float, Wide512f>;
}
template <>
std::span<const TileForm<double>> tile_forms() {
  return forms_of<double, Wide512d>;
}
template <>
const TileForm<float>& tile_form() {
  static const TileForm<float>& form = first_that_runs<float>();
  return form;
}
template <>
const TileForm<double>& tile_form() {
  static const TileForm<double>& form = first_that_runs<double>();
  return form;
}

}  // namespace stretto
