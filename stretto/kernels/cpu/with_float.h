// From an element type known at run time to one known at compile time:
//
//   return with_float(call.out[0].dtype, [&]<class T>() -> Runner { return [=](const Args& a) { f(a.input<T>(0)); };
//   });
//
// with_stored is the same where bf16 may lie in memory: T is BF16 then, and Wide<T> what it is computed in.
#pragma once
#include "stretto/base/bf16.h"
#include "stretto/base/dtype.h"
#include "stretto/base/error.h"

namespace stretto {

template <class F>
auto with_float(DType t, const F& f) {
  STRETTO_ASSERT(t == f32 || t == f64, "kernels compute in f32 and f64");
  return t == f32 ? f.template operator()<float>() : f.template operator()<double>();
}

template <class F>
auto with_stored(DType t, const F& f) {
  STRETTO_ASSERT(is_float(t) && t != f16, "kernels compute with f32, f64 and bf16");
  return t == f32   ? f.template operator()<float>()
         : t == f64 ? f.template operator()<double>()
                    : f.template operator()<BF16>();
}

}  // namespace stretto
