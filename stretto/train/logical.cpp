#include "stretto/train/logical.h"

#include <algorithm>

#include "stretto/base/philox.h"
#include "stretto/kernels/cpu/normal.h"

namespace stretto {
namespace {

// Calls f(offset, logical, length) for every run of consecutive logical elements: `offset` is where they are stored.
template <class F>
void for_runs(const Dims& dims, F f) {
  i64 run = 1;  // the longest innermost run without padding
  std::size_t inner = dims.size();
  while (inner > 0 && (inner == dims.size() || !dims[inner].logical)) run *= dims[--inner].valid();
  i64 outer = 1;
  for (std::size_t d = 0; d < inner; ++d) outer *= dims[d].valid();
  std::vector<i64> index(inner, 0);
  for (i64 o = 0; o < outer; ++o) {
    i64 offset = 0;
    for (std::size_t d = 0; d < dims.size(); ++d) offset = offset * dims[d].size + (d < inner ? index[d] : 0);
    f(offset, o * run, run);
    for (std::size_t d = inner; d-- > 0;) {
      if (++index[d] < dims[d].valid()) break;
      index[d] = 0;
    }
  }
}

std::vector<i64> logical_sizes(const Dims& dims) {
  std::vector<i64> s;
  for (const Dim& d : dims) s.push_back(d.valid());
  return s;
}

template <class T>
void fill(const CompiledParam& p, u64 seed, T* to) {
  const PhiloxKey key = philox_key(seed, p.name);
  const double scale = p.options.init.scale;
  for_runs(p.dims, [&](i64 offset, i64 logical, i64 length) {
    T* at = to + offset;
    switch (p.options.init.kind) {
      case Init::Kind::zeros:
        std::fill_n(at, length, T(0));
        break;
      case Init::Kind::ones:
        std::fill_n(at, length, T(scale));
        break;
      case Init::Kind::uniform:
        for (i64 i = 0; i < length; ++i) at[i] = T((2 * uniform_at(key, u64(logical + i)) - 1) * scale);
        break;
      case Init::Kind::normal:
        fill_normal(key, u64(logical), scale, std::span<T>(at, std::size_t(length)));
        break;
    }
  });
}

}  // namespace

void initialise(const CompiledParam& p, u64 seed, std::byte* to) {
  if (p.dtype == f64)
    fill(p, seed, reinterpret_cast<double*>(to));
  else
    fill(p, seed, reinterpret_cast<float*>(to));
}

Array read_logical(const CompiledParam& p, const std::byte* from) {
  Array a{p.dtype, logical_sizes(p.dims), {}};
  const std::size_t size = size_of(p.dtype);
  a.bytes.resize(std::size_t(a.elements()) * size);
  for_runs(p.dims, [&](i64 offset, i64 logical, i64 length) {
    std::memcpy(a.bytes.data() + std::size_t(logical) * size, from + std::size_t(offset) * size,
                std::size_t(length) * size);
  });
  return a;
}

void write_logical(const CompiledParam& p, const Array& a, std::byte* to) {
  const std::vector<i64> expect = logical_sizes(p.dims);
  if (a.dtype != p.dtype || a.sizes != expect)
    throw Error("parameter", "'{}' is {} and the array is {}", p.name, (Array{p.dtype, expect, {}}).str(), a.str())
        .hint("pass the logical values, in the order of the parameter's dims {}", p.dims.str());
  const std::size_t size = size_of(p.dtype);
  for_runs(p.dims, [&](i64 offset, i64 logical, i64 length) {
    std::memcpy(to + std::size_t(offset) * size, a.bytes.data() + std::size_t(logical) * size,
                std::size_t(length) * size);
  });
}

}  // namespace stretto
