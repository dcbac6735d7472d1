// values(builder, dims, dtype, numbers): an array that is part of the program: no parameter, in no checkpoint.
//
//   Tensor decay = values(t.builder, {heads}, t.dtype(), {0.5, 0.25, 0.125, 0.0625});
//
// Numbers go along the last dim first. Padding is zero.
#pragma once
#include <vector>

#include "stretto/ir/op.h"

namespace stretto {

struct Numbers {
  std::vector<double> all;
};
inline void attr_hash(u64& h, const Numbers& v) {
  h = hash_bytes(v.all.data(), v.all.size() * sizeof(double), h + v.all.size());
}
std::string attr_str(const Graph&, const Numbers&);  // "12 numbers"

struct ValuesAttrs {
  DimSet dims;
  std::vector<i64> sizes;  // of the whole array, without padding
  DType dtype = f32;
  Numbers numbers;
  static constexpr void fields(auto& s, auto f) {
    f("dims", s.dims);
    f("sizes", s.sizes);
    f("dtype", s.dtype);
    f("numbers", s.numbers);
  }
};
Tensor values(Builder&, const Dims& dims, DType dtype, std::vector<double> numbers);

}  // namespace stretto
