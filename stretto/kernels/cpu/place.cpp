#include "stretto/kernels/cpu/place.h"

#include <algorithm>

#include "stretto/base/bf16.h"

namespace stretto {
namespace {

template <class T>
void copy_nest(Nest nest, const std::byte* from, std::byte* to, bool add) {
  const T* a = reinterpret_cast<const T*>(from);
  T* o = reinterpret_cast<T*>(to);
  const Loop inner = take_innermost(nest);
  run_nest(nest, [&](Steps at) {
    const T* x = a + at[0];
    T* y = o + at[1];
    if (add)
      for (i64 i = 0; i < inner.size; ++i) y[i * inner.step[1]] = T(y[i * inner.step[1]] + x[i * inner.step[0]]);
    else if (inner.step[0] == 1 && inner.step[1] == 1)
      std::copy_n(x, inner.size, y);
    else
      for (i64 i = 0; i < inner.size; ++i) y[i * inner.step[1]] = x[i * inner.step[0]];
  });
}

void copy_nest(DType type, const Nest& nest, const std::byte* from, std::byte* to, bool add) {
  if (type == f32)
    copy_nest<float>(nest, from, to, add);
  else if (type == f64)
    copy_nest<double>(nest, from, to, add);
  else if (type == bf16)
    copy_nest<BF16>(nest, from, to, add);
  else
    copy_nest<std::int32_t>(nest, from, to, add);
}

}  // namespace

Placement::Placement(const View& part, const View& whole, const ViewMap& map)
    : dtype_(part.dtype), start_(start_of(whole, map)) {
  for (std::size_t i = 0; i < part.dims.size(); ++i) {
    const i64 there = whole.strides[*map.from[i]] * map.step_of(i);
    same_strides_ = same_strides_ && (part.sizes[i] == 1 || part.strides[i] == there);
    add_loop(nest_, part.sizes[i], {part.strides[i], there});
  }
}

void Placement::run(const std::byte* from, std::byte* to, bool add) const {
  to += start_ * i64(size_of(dtype_));
  if (!add && same_strides_ && from == to) return;
  copy_nest(dtype_, nest_, from, to, add);
}

void fill_zero(const View& v, std::byte* to) {
  Nest nest;
  for (std::size_t i = 0; i < v.dims.size(); ++i) add_loop(nest, v.sizes[i], {0, v.strides[i]});
  const double zero = 0;
  copy_nest(v.dtype, nest, reinterpret_cast<const std::byte*>(&zero), to, false);
}

Runner place_in_zeros(const Call& call, const ViewMap& map) {
  return [place = Placement(call.in[0], call.out[0], map), out = call.out[0],
          accumulate = call.accumulate](const Args& args) {
    const bool add = accumulate && !args.now.overwrite;
    if (!add) fill_zero(out, args.out[0]);
    place.run(args.in[0], args.out[0], add);
  };
}

Runner place_all(const Call& call) {
  std::vector<Placement> parts;
  for (std::size_t i = 0; i < call.in.size(); ++i)
    parts.emplace_back(call.in[i], call.out[0], call.node.op->into(call.op(), int(i)));
  return [parts = std::move(parts)](const Args& args) {
    for (std::size_t i = 0; i < parts.size(); ++i) parts[i].run(args.in[i], args.out[0], false);
  };
}

}  // namespace stretto
