#include "stretto/ops/max.h"

#include <limits>

#include "stretto/kernels/cpu/reduce.h"

namespace stretto {
namespace {
struct Max {
  template <class T>
  using Running = T;
  template <class T>
  static T start() {
    return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::min();
  }
  template <class T>
  static T join(T a, T b) {
    return a > b || a != a ? a : b;  // NaN stays
  }
  static const DimSet& over(const Call& c) { return c.attrs<MaxAttrs>().over; }
};
}  // namespace

std::span<const Kernel> max_kernels() { return reduce_kernels<Max>; }

}  // namespace stretto
