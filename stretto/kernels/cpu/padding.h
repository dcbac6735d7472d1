// Padding of results is written as zero, so that nothing downstream depends on what was there.
//
//   const Padding padding(call.out[0]);      // when preparing
//   padding.clear(args.output<T>());         // does nothing where no dim is padded
#pragma once
#include <initializer_list>
#include <span>
#include <vector>

#include "stretto/kernels/cpu/nest.h"
#include "stretto/kernels/kernel.h"

namespace stretto {

class Padding {
 public:
  Padding() = default;
  explicit Padding(const View& v) {
    for (DimId padded : v.dims) {
      const i64 valid = v.valid(padded);
      if (valid == v.size(padded)) continue;
      Slab slab{.start = valid * v.stride(padded)};
      for (DimId d : v.dims) add_loop(slab.nest, v.size(d) - (d == padded ? valid : 0), {v.stride(d)});
      slabs_.push_back(std::move(slab));
    }
  }
  template <class T>
  void clear(T* to) const {
    if (!to) return;
    for (const Slab& s : slabs_) run_nest(s.nest, [&](Steps at) { to[s.start + at[0]] = T(0); });
  }

 private:
  struct Slab {
    i64 start = 0;
    Nest nest;
  };
  std::vector<Slab> slabs_;
};

// Loops over the elements of `dims` that are no padding, in this order; the views are those of the arrays.
inline Nest valid_nest(const DimSet& dims, std::span<const View* const> views) {
  STRETTO_ASSERT(views.size() <= Steps{}.size(), "more arrays than a nest has steps");
  Nest nest;
  for (DimId d : dims) {
    i64 size = 1;
    Steps step{};
    std::size_t k = 0;
    for (const View* v : views) {
      if (contains(v->dims, d)) size = v->valid(d);
      step[k++] = v->stride(d);
    }
    add_loop(nest, size, step);
  }
  return nest;
}
inline Nest valid_nest(const DimSet& dims, std::initializer_list<const View*> views) {
  return valid_nest(dims, std::span(views.begin(), views.size()));
}

}  // namespace stretto
