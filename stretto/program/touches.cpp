#include "stretto/program/touches.h"

namespace stretto {

std::vector<Touch> touches_of(const Calls& body, CallRange range) {
  IdVector<BufferId, Touch> all(body.buffers.size());
  for (CallId c : ids(range)) {
    for (const Ref& r : body.calls[c].in)
      if (r.buffer) all[*r.buffer].read = true;
    for (const Ref& r : body.calls[c].out)
      if (r.buffer) all[*r.buffer].written = true;
  }
  std::vector<Touch> touched;
  for (BufferId b : all.ids())
    if (all[b].read || all[b].written) touched.push_back({b, all[b].read, all[b].written});
  return touched;
}

const Binding* binding_of(const Program& p, const Run& r, BufferId id) {
  const BodyBuffer& b = p.calls[r.task]->buffers[id];
  if (const ResultId* x = b.result()) return &p.task(r).outputs[*x];
  if (const ArgumentId* x = b.argument()) return &p.task(r).inputs[*x];
  return nullptr;
}

}  // namespace stretto
