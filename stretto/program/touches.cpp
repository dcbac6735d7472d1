#include "stretto/program/touches.h"

#include <algorithm>
#include <map>

namespace stretto {
namespace {

constexpr i64 most_spans = 1024;

// In order, and joined where they touch.
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

struct SpanLoop {
  i64 size = 1, stride = 1;
};

std::vector<Touch> whole_buffers(const Calls& body) {
  IdVector<BufferId, Touch> all(body.buffers.size());
  for (const KernelCall& c : body.calls) {
    for (const Ref& r : c.in)
      if (r.buffer) all[*r.buffer].read = true;
    for (const Ref& r : c.out)
      if (r.buffer) all[*r.buffer].written = true;
  }
  std::vector<Touch> touched;
  for (BufferId b : all.ids())
    if (all[b].read || all[b].written) touched.push_back({b, all[b].read, all[b].written, {0, body.buffers[b].bytes}});
  return touched;
}

}  // namespace

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

ByteSpans spans_of(const Ref& r) {
  std::vector<SpanLoop> loops;
  for (std::size_t d = 0; d < r.view.dims.size(); ++d)
    if (r.view.sizes[d] != 1 && r.view.strides[d] != 0) loops.push_back({r.view.sizes[d], r.view.strides[d]});
  std::sort(loops.begin(), loops.end(), [](const SpanLoop& x, const SpanLoop& y) { return x.stride < y.stride; });
  const u64 element = size_of(r.view.dtype), start = u64(r.start);
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

std::vector<Touch> touches_of(const Calls& body, CallRange range) {
  if (range.from == CallId(0) && range.to == body.calls.next_id()) return whole_buffers(body);
  struct ReadAndWritten {
    ByteSpans read, written;
  };
  std::map<BufferId, ReadAndWritten> all;
  const auto add = [](ByteSpans& to, const ByteSpans& more) { to.insert(to.end(), more.begin(), more.end()); };
  for (CallId c : ids(range)) {
    for (const Ref& r : body.calls[c].in)
      if (r.buffer) add(all[*r.buffer].read, spans_of(r));
    for (const Ref& r : body.calls[c].out)
      if (r.buffer) add(all[*r.buffer].written, spans_of(r));
  }
  std::vector<Touch> touched;
  for (auto& [buffer, spans] : all) {
    spans = {in_order(std::move(spans.read)), in_order(std::move(spans.written))};
    const bool same = spans.read == spans.written;
    for (const ByteSpan& s : spans.read) touched.push_back({buffer, true, same, s});
    for (const ByteSpan& s : spans.written)
      if (!same) touched.push_back({buffer, false, true, s});
  }
  return touched;
}

const Binding* binding_of(const Program& p, const Run& r, BufferId id) {
  const BodyBuffer& b = p.calls[r.task]->buffers[id];
  if (const ResultId* x = b.result()) return &p.task(r).outputs[*x];
  if (const ArgumentId* x = b.argument()) return &p.task(r).inputs[*x];
  return nullptr;
}

}  // namespace stretto
