#include "stretto/ir/view.h"

#include <algorithm>

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
  const std::optional<int> i = find(dims, d);
  return i ? strides[*i] : 0;
}

i64 View::size(DimId d) const {
  const std::optional<int> i = find(dims, d);
  return i ? sizes[*i] : 1;
}

i64 View::valid(DimId d) const {
  const std::optional<int> i = find(dims, d);
  return i ? std::clamp<i64>(limits[*i] - offsets[*i], 0, sizes[*i]) : 1;
}

View contiguous_view(const Graph& g, const Type& t) {
  View v{.dtype = t.dtype, .dims = t.dims};
  for (DimId d : t.dims) {
    v.sizes.push_back(g.size(d));
    v.offsets.push_back(g.dim(d).first);
    v.limits.push_back(g.dim(d).first + g.dim(d).valid());
  }
  v.strides.assign(t.dims.size(), 1);
  for (std::size_t i = t.dims.size(); i-- > 1;) v.strides[i - 1] = v.strides[i] * v.sizes[i];
  return v;
}

View on_rank(View v, const Graph& g, const Mesh& mesh, const Coordinates& at) {
  for (std::size_t i = 0; i < v.dims.size(); ++i)
    if (const Dim& d = g.dim(v.dims[i]); !d.axes.empty()) v.offsets[i] += block_of(mesh, at, d.axes) * d.size;
  return v;
}

View sub_view(const View& whole, const ViewMap& map, const DimSet& dims, const Graph& g) {
  View v{.dtype = whole.dtype, .dims = dims};
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::optional<int> from = map.from[i];
    v.sizes.push_back(g.size(dims[i]));
    const Dim& d = g.dim(dims[i]);
    v.limits.push_back(d.first + d.valid());
    v.strides.push_back(from ? whole.strides[*from] * map.step_of(i) : 0);
    // A rank's block begins as far into the one as into the other.
    v.offsets.push_back(d.first + (from ? whole.offsets[*from] - g.dim(whole.dims[*from]).first : 0));
  }
  return v;
}

i64 start_of(const View& whole, const ViewMap& map) {
  i64 at = 0;
  for (std::size_t i = 0; i < map.start.size(); ++i) at += map.start[i] * whole.strides[i];
  return at;
}

}  // namespace stretto
