#include "stretto/program/overlap/call_facts.h"

#include "stretto/ir/collective.h"
#include "stretto/ir/op.h"

namespace stretto {
namespace {

std::vector<ByteSpans> spans(const std::vector<Ref>& refs) {
  std::vector<ByteSpans> all;
  for (const Ref& r : refs) all.push_back(r.buffer ? spans_of(r.view, u64(r.start)) : ByteSpans());
  return all;
}

}  // namespace

const IdVector<CallId, CallFacts::OfCall>& CallFacts::of(const Calls& body) {
  const auto [it, fresh] = known_.try_emplace(&body);
  if (fresh)
    for (const KernelCall& c : body.calls) {
      const Node& n = body.graph.node(c.node);
      it->second.push_back({spans(c.in), spans(c.out)});
      if (n.op->collective) it->second.back().axes = shape_of(body.graph, n, mesh_).axes;
    }
  return it->second;
}

}  // namespace stretto
