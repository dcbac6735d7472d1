#include "ops/examples.h"

#include <cmath>

namespace stretto::test {
namespace {

void resize(Graph& g, std::vector<Examples::Source>& sources, Variant variant) {
  for (Dim& d : g.dims) {
    const i64 pad = d.valid() == d.size ? 0 : 2;
    const i64 valid = variant == Variant::single ? 1 : d.valid() + (d.valid() > 3) + 1;
    d.size = valid + pad;
    d.logical = pad ? valid : 0;
  }
  if (variant == Variant::single)
    for (Examples::Source& s : sources) s.below = std::min<i64>(s.below, 1);
}

// True when two operands became one.
bool tie(Graph& g, std::vector<Examples::Source>& sources) {
  bool any = false;
  for (std::size_t i = 0; i < sources.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      Examples::Source &a = sources[j], &b = sources[i];
      if (g.type(a.value) != g.type(b.value) || a.below != b.below) continue;
      for (Node& n : g.nodes)
        for (Value& v : n.operands)
          if (v == b.value) v = a.value, any = true;
      if (b.hi - b.lo < a.hi - a.lo) a.lo = b.lo, a.hi = b.hi;
      break;
    }
  return any;
}

}  // namespace

std::optional<Example> example_of(const Op& op, std::size_t which, DType type, Variant variant) {
  Examples all;
  all.dtype = type;
  op.examples(all);
  all.builder.graph.outputs = all.cases[which].results;
  MovedNodes moved;
  Example e;
  e.graph = prune(all.builder.graph, &moved);
  Graph& g = e.graph;
  e.results = g.outputs;
  for (Examples::Source s : all.sources) {
    const std::optional<NodeId> to = moved[s.value.node.value];
    if (!to) continue;
    s.value.node = *to;
    e.sources.push_back(s);
  }
  for (std::uint32_t i = 0; i < g.nodes.size(); ++i)
    if (g.nodes[i].op->leaf == Leaf::param) e.sources.push_back({{NodeId{i}, 0}, -1, 1, 0});
  if (variant == Variant::single || variant == Variant::larger) resize(g, e.sources, variant);
  if (variant == Variant::tied ? !tie(g, e.sources) : !verify(g).empty()) return std::nullopt;
  return e;
}

Buffer random_buffer(const Graph& g, const Type& t, const Examples::Source& range, std::mt19937& random) {
  Buffer b(g, t);
  const View v = contiguous_view(g, t);
  i64 i = 0;
  for_each_index(v.sizes, [&](const std::vector<i64>& index) {
    const double u = std::uniform_real_distribution<double>(0, 1)(random);
    double x = range.below > 0 ? std::floor(u * double(range.below))
                               : double(float(range.lo + (range.hi - range.lo) * u));  // the same in f32
    if (is_float(t.dtype) && is_padding(v, index)) x = std::nan("");
    b.set(i++, x);
  });
  return b;
}

}  // namespace stretto::test
