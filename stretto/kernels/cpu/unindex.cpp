#include "stretto/kernels/cpu/place.h"
#include "stretto/ops/index.h"

namespace stretto {
namespace {
Runner prepare(const Call& call) {
  const UnindexAttrs& a = call.attrs<UnindexAttrs>();
  ViewMap map{.from = {}, .start = std::vector<i64>(call.out[0].dims.size(), 0)};
  for (DimId d : call.in[0].dims) map.from.push_back(position(call.out[0].dims, d));
  map.start[std::size_t(a.position)] = a.at;
  return place_in_zeros(call, map);
}
constexpr Kernel kernels[] = {{.name = "place", .prepare = &prepare}};
}  // namespace

std::span<const Kernel> unindex_kernels() { return kernels; }
}  // namespace stretto
