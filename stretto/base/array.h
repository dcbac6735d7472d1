// Host arrays that go in and out of a Trainer.
//
//   Batch batch{{"x", Array::of<float>(values, {64, 32})}};
#pragma once
#include <cstddef>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "stretto/base/bf16.h"
#include "stretto/base/dtype.h"
#include "stretto/base/error.h"
#include "stretto/base/id.h"

namespace stretto {

template <class T>
constexpr DType dtype_of = std::is_same_v<T, float>    ? f32
                           : std::is_same_v<T, double> ? f64
                           : std::is_same_v<T, BF16>   ? bf16
                                                       : i32;

struct Array {
  DType dtype = f32;
  std::vector<i64> sizes;
  std::vector<std::byte> bytes;

  i64 elements() const;
  std::string str() const;  // "f32[64, 32]"

  template <class T>
  static Array of(std::span<const T> values, std::vector<i64> sizes) {
    Array a{dtype_of<T>, std::move(sizes), {}};
    if (std::cmp_not_equal(a.elements(), values.size()))
      throw Error("array", "{} values do not fill {}", values.size(), a.str());
    a.bytes.resize(values.size_bytes());
    std::memcpy(a.bytes.data(), values.data(), values.size_bytes());
    return a;
  }
  template <class T>
  std::span<const T> as() const {
    STRETTO_ASSERT(dtype == dtype_of<T>, "an array of another type");
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  std::vector<double> doubles() const;  // whatever the dtype
};
using Batch = std::map<std::string, Array>;  // input name -> the whole step's rows

}  // namespace stretto
