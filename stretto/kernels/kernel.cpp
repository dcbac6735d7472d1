#include "stretto/kernels/kernel.h"

#include <algorithm>
#include <map>

#include "stretto/kernels/cpu/pointwise.h"

namespace stretto {

bool View::contiguous() const {
  i64 expect = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    if (sizes[i] != 1 && strides[i] != expect) return false;
    expect *= sizes[i];
  }
  return true;
}

i64 View::elements() const {
  i64 n = 1;
  for (i64 s : sizes) n *= s;
  return n;
}

i64 View::stride(DimId d) const {
  const int i = position(dims, d);
  return i < 0 ? 0 : strides[std::size_t(i)];
}

i64 View::size(DimId d) const {
  const int i = position(dims, d);
  return i < 0 ? 1 : sizes[std::size_t(i)];
}

i64 View::valid(DimId d) const {
  const int i = position(dims, d);
  if (i < 0) return 1;
  const std::size_t j = std::size_t(i);
  return std::clamp<i64>(limits[j] - offsets[j], 0, sizes[j]);
}

View contiguous_view(const Graph& g, const Type& t) {
  View v{.dtype = t.dtype, .dims = t.dims};
  for (DimId d : t.dims) {
    v.sizes.push_back(g.size(d));
    v.limits.push_back(g.dim(d).valid());
  }
  v.offsets.assign(t.dims.size(), 0);
  v.strides.assign(t.dims.size(), 1);
  for (std::size_t i = t.dims.size(); i-- > 1;) v.strides[i - 1] = v.strides[i] * v.sizes[i];
  return v;
}

View sub_view(const View& whole, const ViewMap& map, const DimSet& dims, const Graph& g) {
  View v{.dtype = whole.dtype, .dims = dims};
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const int from = map.from[i];
    v.sizes.push_back(g.size(dims[i]));
    v.limits.push_back(g.dim(dims[i]).valid());
    v.strides.push_back(from < 0 ? 0 : whole.strides[std::size_t(from)]);
    v.offsets.push_back(from < 0 ? 0 : whole.offsets[std::size_t(from)]);
  }
  return v;
}

i64 start_of(const View& whole, const ViewMap& map) {
  i64 at = 0;
  for (std::size_t i = 0; i < map.start.size(); ++i) at += map.start[i] * whole.strides[i];
  return at;
}

#define KERNELS(op) std::span<const Kernel> op##_kernels();
#define POINTWISE(op) Tile op##_tile(std::span<const DType> in, DType out);
#include "stretto/kernels/cpu/kernels.def"
#undef KERNELS
#undef POINTWISE
#define KERNELS(op) extern const Op op##_op;
#define POINTWISE(op) extern const Op op##_op;
#include "stretto/kernels/cpu/kernels.def"
#undef KERNELS
#undef POINTWISE

namespace {
struct Entry {
  std::span<const Kernel> kernels;
  Tile (*tile)(std::span<const DType>, DType) = nullptr;
};
const std::map<const Op*, Entry>& table() {
  static const std::map<const Op*, Entry> t = [] {
    std::map<const Op*, Entry> m;
#define KERNELS(op) m[&op##_op].kernels = op##_kernels();
#define POINTWISE(op) m[&op##_op] = {pointwise_kernels(), &op##_tile};
#include "stretto/kernels/cpu/kernels.def"
#undef KERNELS
#undef POINTWISE
    return m;
  }();
  return t;
}
}  // namespace

std::span<const Kernel> cpu_kernels(const Op& op) {
  const auto it = table().find(&op);
  return it == table().end() ? std::span<const Kernel>{} : it->second.kernels;
}

Tile cpu_tile(const Op& op, std::span<const DType> in, DType out) {
  const auto it = table().find(&op);
  return it == table().end() || !it->second.tile ? nullptr : it->second.tile(in, out);
}

const Kernel& choose_kernel(const Call& call) {
  for (const Kernel& k : cpu_kernels(*call.node.op))
    if (!k.accepts || k.accepts(call)) return k;
  throw Error(call.node.op->name, "no kernel accepts these arguments").as(Error::Kind::bug);
}

}  // namespace stretto
