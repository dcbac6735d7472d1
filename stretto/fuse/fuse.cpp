#include "stretto/fuse/fuse.h"

#include <algorithm>
#include <map>

#include "stretto/fuse/inner/assemble.h"
#include "stretto/fuse/inner/group.h"
#include "stretto/ops/ops.h"

namespace stretto {
namespace {

IdVector<ArgumentId, Value> arguments_of(const Graph& g) {
  IdVector<ArgumentId, Value> all;
  for (NodeId id : node_ids(g))
    if (g.node(id).op->leaf == Leaf::argument) all.push_back({id, 0});
  return all;
}

Value& output_of(Graph& g, ResultId r) { return g.outputs[r.value]; }

// The result becomes a copy of what it was, made after everything else.
void append_copy(Graph& g, ResultId result) {
  Value& v = output_of(g, result);
  g.nodes.push_back({.op = &copy_op, .operands = {v}, .results = {g.type(v)}});
  v = {last_node(g), 0};
}

// Every result comes out of a kernel and is no other result; one that is added up comes out of a kernel that can add,
// and nobody else reads it. Where that is not so, a copy is the result, and adds. A result that is the argument whose
// memory it takes over lies there already.
Graph with_results_made(Graph g, const ResultMemories& results) {
  const IdVector<ArgumentId, Value> arguments = arguments_of(g);
  std::map<Value, int> uses;
  for (const Node& n : g.nodes)
    for (Value v : n.operands) ++uses[v];
  for (Value v : g.outputs) ++uses[v];
  std::map<Value, ResultId> made;
  for (ResultId r : results.ids()) {
    const auto& [accumulate, same_memory] = results[r];
    const Value v = output_of(g, r);
    const Node& n = g.node(v);
    if (!accumulate && same_memory && arguments[*same_memory] == v) continue;
    const bool own = n.op->leaf != Leaf::argument && !n.op->view && made.try_emplace(v, r).second;
    const bool adds = n.op->accumulates && n.results.size() == 1 && uses[v] == 1;
    if (!own || (accumulate && !adds)) append_copy(g, r);
  }
  return g;
}

const BodyBuffer* buffer_of(const Calls& c, auto role) {
  for (const BodyBuffer& b : c.buffers)
    if (const auto* mine = std::get_if<decltype(role)>(&b.role); mine && *mine == role) return &b;
  return nullptr;
}

// May the call read the argument and write the result at the same addresses? A pointwise kernel may, element by
// element; so may a sum over ranks.
bool in_one_call(const Calls& c, const KernelCall& call, const BodyBuffer& argument, const BodyBuffer& result) {
  const Node& writer = c.graph.node(call.node);
  const bool added_up =
      writer.op->collective_kind == CollectiveKind::reduce && call.in[0].start == 0 && call.in[0].view.contiguous();
  const auto lies_in = [&](const Ref& r, const BodyBuffer& b) { return r.buffer && &c.buffers[*r.buffer] == &b; };
  for (const Ref& in : call.in)
    for (const Ref& out : call.out)
      if (lies_in(in, argument) && lies_in(out, result) && !same_elements(in, out)) return false;
  return writer.op->elementwise() || added_up;
}

// Is a result that takes over an argument's memory written while somebody still has to read the argument?
bool written_too_early(const Calls& c, ResultId r, ArgumentId a) {
  const BodyBuffer *result = buffer_of(c, r), *argument = buffer_of(c, a);
  if (!result || !argument->touched) return false;
  const CallId written = result->touched->first, read = argument->touched->last;
  return read > written || (read == written && !in_one_call(c, c.calls[written], *argument, *result));
}

std::vector<ResultId> written_too_early(const Calls& c, const ResultMemories& results) {
  std::vector<ResultId> early;
  for (ResultId r : results.ids())
    if (const auto argument = results[r].same_memory; argument && written_too_early(c, r, *argument))
      early.push_back(r);
  return early;
}

}  // namespace

Calls fuse(const Graph& body, const ResultMemories& results) {
  STRETTO_ASSERT(results.size() == body.outputs.size());
  Graph g = with_results_made(prune_keeping(body, input_op), results);
  std::vector<Value> alone;
  for (ResultId r : results.ids())
    if (results[r].accumulate) alone.push_back(output_of(g, r));
  Calls c = assemble(group_pointwise(g, alone), results);
  if (const std::vector<ResultId> early = written_too_early(c, results); !early.empty()) {
    for (ResultId r : early) append_copy(g, r);
    c = assemble(group_pointwise(g, alone), results);
    STRETTO_ASSERT(written_too_early(c, results).empty());
  }
  refuse(verify(c));
  return c;
}

}  // namespace stretto
