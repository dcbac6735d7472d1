#include "stretto/ops/block.h"

#include <algorithm>

#include "stretto/base/bf16.h"
#include "stretto/kernels/cpu/nest.h"
#include "stretto/kernels/cpu/place.h"
#include "stretto/kernels/kernel.h"

namespace stretto {
namespace {

template <class T>
Runner cut(const Call& call) {  // along one dim
  const BlockAttrs& a = call.attrs<BlockAttrs>();
  const View &x = call.in[0], &y = call.out[0];
  const std::size_t in = std::size_t(position(x.dims, a.from[0])), out = std::size_t(position(y.dims, a.to));
  const i64 start = (y.offsets[out] - x.offsets[in]) * x.strides[in];
  Nest nest;
  for (std::size_t i = 0; i < y.dims.size(); ++i) add_loop(nest, y.sizes[i], {x.strides[i], y.strides[i]});
  return [nest, start](const Args& args) {
    run_nest(nest, [&](Steps at) { args.output<T>()[at[1]] = args.input<T>(0)[start + at[0]]; });
  };
}

template <class T>
Runner flat(const Call& call) {  // elements `first` and following of all, then zeros
  const View &x = call.in[0], &y = call.out[0];
  if (x.contiguous() && y.contiguous()) {
    const i64 count = std::clamp<i64>(x.elements() - y.offsets[0], 0, y.sizes[0]);
    return [first = y.offsets[0], count, size = y.sizes[0]](const Args& args) {
      std::copy_n(args.input<T>(0) + first, count, args.output<T>());
      std::fill_n(args.output<T>() + count, size - count, T(0));
    };
  }
  Nest nest;
  for (std::size_t i = 0; i < x.dims.size(); ++i) nest.push_back({x.sizes[i], {x.strides[i]}});
  return [nest, first = y.offsets[0], size = y.sizes[0], step = y.strides[0]](const Args& args) {
    T* to = args.output<T>();
    i64 at = -first;
    run_nest(nest, [&](Steps from) {
      if (at >= 0 && at < size) to[at * step] = args.input<T>(0)[from[0]];
      ++at;
    });
    for (i64 i = std::max<i64>(at, 0); i < size; ++i) to[i * step] = T(0);
  };
}

template <class T>
Runner prepare_as(const Call& call) {
  return call.attrs<BlockAttrs>().flat ? flat<T>(call) : cut<T>(call);
}

Runner prepare(const Call& call) {
  switch (call.out[0].dtype) {
    case f32:
      return prepare_as<float>(call);
    case f64:
      return prepare_as<double>(call);
    case bf16:
      return prepare_as<BF16>(call);
    default:
      return prepare_as<std::int32_t>(call);
  }
}

Runner prepare_unblock(const Call& call) {
  const UnblockAttrs& a = call.attrs<UnblockAttrs>();
  const View &x = call.in[0], &y = call.out[0];
  const std::size_t in = std::size_t(position(x.dims, a.from)), out = std::size_t(position(y.dims, a.to));
  ViewMap map{.from = {}, .start = std::vector<i64>(y.dims.size(), 0)};
  for (std::size_t i = 0; i < x.dims.size(); ++i) map.from.push_back(int(i));
  map.start[out] = x.offsets[in] - y.offsets[out];
  return place_in_zeros(call, map);
}

constexpr Kernel unblocks[] = {{.name = "plain", .prepare = &prepare_unblock}};
constexpr Kernel kernels[] = {{.name = "plain", .prepare = &prepare}};

}  // namespace

std::span<const Kernel> block_kernels() { return kernels; }
std::span<const Kernel> unblock_kernels() { return unblocks; }

}  // namespace stretto
