// From an element type known at run time to one known at compile time:
//
//   return with_float(call.out[0].dtype, [&]<class T>() -> Runner { return [=](const Args& a) { f(a.input<T>(0)); };
//   });
#pragma once
#include "stretto/base/dtype.h"
#include "stretto/base/error.h"

namespace stretto {

template <class F>
auto with_float(DType t, const F& f) {
  STRETTO_ASSERT(t == f32 || t == f64, "kernels compute in f32 and f64");
  return t == f32 ? f.template operator()<float>() : f.template operator()<double>();
}

}  // namespace stretto
