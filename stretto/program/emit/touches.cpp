#include "stretto/program/emit/touches.h"

#include <map>

namespace stretto {
namespace {

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

std::vector<Touch> touches_of(const Calls& body, CallRange range) {
  if (range.from == CallId(0) && range.to == body.calls.next_id()) return whole_buffers(body);
  struct ReadAndWritten {
    ByteSpans read, written;
  };
  std::map<BufferId, ReadAndWritten> all;
  const auto add = [](ByteSpans& to, const ByteSpans& more) { to.insert(to.end(), more.begin(), more.end()); };
  for (CallId c : ids(range)) {
    for (const Ref& r : body.calls[c].in)
      if (r.buffer) add(all[*r.buffer].read, spans_of(r.view, u64(r.start)));
    for (const Ref& r : body.calls[c].out)
      if (r.buffer) add(all[*r.buffer].written, spans_of(r.view, u64(r.start)));
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

const std::vector<Touch>& KnownTouches::of(const Run& r) {
  const Calls& body = *p_.calls[r.task];
  const CallRange calls = calls_of(r, body);
  std::vector<OfCalls>& all = known_[r.task];
  for (const OfCalls& x : all)
    if (x.calls == calls) return x.touches;
  return all.emplace_back(OfCalls{calls, touches_of(body, calls)}).touches;
}

const Binding* binding_of(const Program& p, const Run& r, BufferId id) {
  const BodyBuffer& b = p.calls[r.task]->buffers[id];
  if (const ResultId* x = b.result()) return &p.task(r).outputs[*x];
  if (const ArgumentId* x = b.argument()) return &p.task(r).inputs[*x];
  return nullptr;
}

}  // namespace stretto
