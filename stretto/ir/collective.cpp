#include "stretto/ir/collective.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace stretto {

std::string_view name_of(CollectiveKind k) {
  switch (k) {
    case CollectiveKind::reduce:
      return "all_reduce";
    case CollectiveKind::gather:
      return "all_gather";
    case CollectiveKind::scatter:
      return "reduce_scatter";
    case CollectiveKind::exchange:
      return "all_to_all";
    case CollectiveKind::rows:
      break;
  }
  return "exchange_rows";
}

i64 CollectiveShape::box() const {
  i64 n = 1;
  for (i64 s : sizes) n *= s;
  return n;
}

i64 CollectiveShape::box_valid(int member) const {
  return valid ? std::clamp<i64>(*valid - member * box(), 0, box()) : box();
}

i64 CollectiveShape::operand() const {
  if (rows) return rows->in * rows->elements;
  return kind == CollectiveKind::scatter || kind == CollectiveKind::exchange ? box() * members : box();
}

i64 CollectiveShape::result() const {
  if (rows) return rows->out * rows->elements;
  return kind == CollectiveKind::gather || kind == CollectiveKind::exchange ? box() * members : box();
}

std::string CollectiveShape::str() const {
  return fmt::format("{}{} over {}={}: {} {{{}}}", name_of(kind), how == Reduce::max ? " (max)" : "",
                     fmt::join(axes, ","), members, stretto::name_of(dtype), fmt::join(sizes, " "));
}

CollectiveShape shape_of(const Graph& g, const Node& n, const View& in, const View& out, const Mesh& mesh) {
  STRETTO_ASSERT(n.op->collective != nullptr, "a collective");
  CollectiveShape s = n.op->collective({g, n}, in, out);
  s.kind = *n.op->collective_kind;
  s.dtype = in.dtype;
  for (const std::string& a : s.axes) s.members *= mesh.extent(a);
  const bool whole = s.valid || (s.operand() == in.elements() && s.result() == out.elements());
  if (!whole || s.valid.value_or(0) > s.box() * s.members)
    throw Error(name_of(s.kind), "{} does not fit {} -> {}", s.str(), g.str(g.type(n.operands[0])), g.str(n.results[0]))
        .hint("these axes have {} ranks in mesh {}", s.members, mesh.str());
  return s;
}

CollectiveShape shape_of(const Graph& g, const Node& n, const Mesh& mesh) {
  return shape_of(g, n, contiguous_view(g, g.type(n.operands[0])), contiguous_view(g, n.results[0]), mesh);
}

CollectiveShape merged(CollectiveShape s) {
  std::vector<i64> sizes, in, out;
  for (std::size_t i = 0; i < s.sizes.size(); ++i) {
    if (s.sizes[i] == 1) continue;
    if (!sizes.empty() && in.back() == s.in_strides[i] * s.sizes[i] && out.back() == s.out_strides[i] * s.sizes[i]) {
      sizes.back() *= s.sizes[i];
      in.back() = s.in_strides[i];
      out.back() = s.out_strides[i];
    } else {
      sizes.push_back(s.sizes[i]);
      in.push_back(s.in_strides[i]);
      out.push_back(s.out_strides[i]);
    }
  }
  s.sizes = std::move(sizes);
  s.in_strides = std::move(in);
  s.out_strides = std::move(out);
  return s;
}

}  // namespace stretto
