#include "stretto/ops/sum.h"

#include "stretto/kernels/cpu/reduce.h"

namespace stretto {
namespace {
struct Sum {
  template <class T>
  using Running = double;
  template <class T>
  static T start() {
    return 0;
  }
  template <class T>
  static T join(T a, T b) {
    return a + b;
  }
  static const DimSet& over(const Call& c) { return c.attrs<SumAttrs>().over; }
};
}  // namespace

std::span<const Kernel> sum_kernels() { return reduce_kernels<Sum>; }

}  // namespace stretto
