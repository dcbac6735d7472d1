#include "stretto/ir/spans.h"

#include <algorithm>

namespace stretto {
namespace {

constexpr i64 most_spans = 1024;

struct SpanLoop {
  i64 size = 1, stride = 1;
};

}  // namespace

ByteSpans in_order(ByteSpans spans) {
  std::sort(spans.begin(), spans.end(), [](const ByteSpan& x, const ByteSpan& y) { return x.from < y.from; });
  ByteSpans all;
  for (const ByteSpan& s : spans)
    if (!all.empty() && s.from <= all.back().to)
      all.back().to = std::max(all.back().to, s.to);
    else
      all.push_back(s);
  return all;
}

bool meet(const ByteSpans& a, const ByteSpans& b) {
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i].from < b[j].to && b[j].from < a[i].to) return true;
    ++(a[i].to < b[j].to ? i : j);
  }
  return false;
}

bool covers(const ByteSpans& all, const ByteSpans& part) {
  return std::all_of(part.begin(), part.end(), [&](const ByteSpan& p) {
    return std::any_of(all.begin(), all.end(), [&](const ByteSpan& a) { return a.from <= p.from && p.to <= a.to; });
  });
}

ByteSpans spans_of(const View& v, u64 start) {
  std::vector<SpanLoop> loops;
  for (std::size_t d = 0; d < v.dims.size(); ++d)
    if (v.sizes[d] != 1 && v.strides[d] != 0) loops.push_back({v.sizes[d], v.strides[d]});
  std::sort(loops.begin(), loops.end(), [](const SpanLoop& x, const SpanLoop& y) { return x.stride < y.stride; });
  const u64 element = size_of(v.dtype);
  i64 run = 1, pieces = 1, reach = 1;
  std::size_t first = 0;
  for (; first < loops.size() && loops[first].stride <= run; ++first)
    run = loops[first].stride * (loops[first].size - 1) + run;
  for (const SpanLoop& x : loops) reach += x.stride * (x.size - 1);
  for (std::size_t i = first; i < loops.size(); ++i) pieces *= loops[i].size;
  if (std::any_of(loops.begin(), loops.end(), [](const SpanLoop& x) { return x.size == 0; })) return {};
  if (pieces > most_spans) return {{start, start + u64(reach) * element}};
  ByteSpans all{{start, start + u64(run) * element}};
  for (std::size_t i = first; i < loops.size(); ++i) {
    const std::size_t n = all.size();
    for (i64 k = 1; k < loops[i].size; ++k)
      for (std::size_t j = 0; j < n; ++j) {
        const u64 by = u64(k * loops[i].stride) * element;
        all.push_back({all[j].from + by, all[j].to + by});
      }
  }
  return in_order(std::move(all));
}

}  // namespace stretto
