// One vector register, with the few operations that kernels spell out; the rest is + - * of the compiler's vectors.
#pragma once
#include <cmath>
#include <cstring>

#include "stretto/base/id.h"
#if defined(__AVX2__) && defined(__FMA__)
#define STRETTO_AVX2 1
#include <immintrin.h>
#else
#define STRETTO_AVX2 0
#endif

namespace stretto {

template <class T>
struct Pack {
  typedef T type __attribute__((vector_size(32)));
  static constexpr i64 lanes = i64(32 / sizeof(T));
  static type load(const T* p) {
    type v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static void store(T* p, type v) { std::memcpy(p, &v, sizeof v); }
  static type all(T x) { return x - type{}; }  // subtracting zero changes no bits and costs nothing
  static type max(type a, type b) { return a > b ? a : b; }
  static type multiply_add(type a, type b, type c) {
#if STRETTO_AVX2
    if constexpr (sizeof(T) == 4)
      return type(_mm256_fmadd_ps(__m256(a), __m256(b), __m256(c)));
    else
      return type(_mm256_fmadd_pd(__m256d(a), __m256d(b), __m256d(c)));
#elif defined(__FP_FAST_FMA)  // ARM64: one instruction for all of a register
    for (i64 i = 0; i < lanes; ++i) c[i] = std::fma(a[i], b[i], c[i]);
    return c;
#else
    return a * b + c;
#endif
  }
};

}  // namespace stretto
