#include "stretto/runtime/prepared.h"

#include <map>

#include "stretto/program/lanes.h"

namespace stretto {
namespace {

class Preparation {
 public:
  Preparation(const Program& p, const Coordinates& at, Device& device) : p_(p), at_(at), device_(device) {}

  PreparedProgram run() {
    std::map<const Calls*, BodyId> known;
    for (TaskId t : p_.calls.ids()) {
      const auto [it, fresh] = known.try_emplace(p_.calls[t].get(), out_.bodies.next_id());
      if (fresh) out_.bodies.push_back(body(t));
      out_.body.push_back(it->second);
    }
    return std::move(out_);
  }

 private:
  PreparedBody body(TaskId t) {
    PreparedBody body{.calls = p_.calls[t], .first = t};
    for (const KernelCall& k : body.calls->calls) body.prepared.push_back(call(k, *body.calls));
    return body;
  }

  PreparedCall call(const KernelCall& k, const Calls& calls) {
    const Graph& g = calls.graph;
    Call call{.graph = g, .node = g.node(k.node), .accumulate = k.accumulate};
    PreparedCall out{.node = k.node, .key = k.key};
    for (const Ref& r : k.in) {
      call.in.push_back(on_rank(r.view, g, p_.mesh, at_));
      out.in.push_back({r.buffer, r.start});
    }
    for (const Ref& r : k.out) {
      call.out.push_back(on_rank(r.view, g, p_.mesh, at_));
      out.out.push_back({r.buffer, r.start});
    }
    STRETTO_ASSERT(out.in.size() <= most_operands && out.out.size() <= most_operands);
    if (call.node.op->collective)
      out.does = out_.shared.push_back(merged(shape_of(g, call.node, call.in[0], call.out[0], p_.mesh)));
    else
      out.does = device_.prepare(call);
    return out;
  }

  const Program& p_;
  const Coordinates& at_;
  Device& device_;
  PreparedProgram out_;
};

}  // namespace

PreparedProgram prepare(const Program& p, const Coordinates& at, Device& device) {
  return Preparation(p, at, device).run();
}

}  // namespace stretto
