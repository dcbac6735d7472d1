#include "stretto/kernels/cpu/place.h"
#include "stretto/ops/slice.h"

namespace stretto {
namespace {
Runner prepare(const Call& call) {
  const SliceAttrs& a = call.attrs<SliceAttrs>();
  const DimSet& dims = call.out[0].dims;
  ViewMap map{.from = {}, .start = std::vector<i64>(dims.size(), 0)};
  for (DimId d : call.in[0].dims) map.from.push_back(position(dims, d == a.from ? a.to : d));
  map.start[std::size_t(position(dims, a.to))] = a.start;
  return place_in_zeros(call, map);
}
constexpr Kernel kernels[] = {{.name = "place", .prepare = &prepare}};
}  // namespace

std::span<const Kernel> pad_kernels() { return kernels; }
}  // namespace stretto
