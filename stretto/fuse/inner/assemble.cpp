#include "stretto/fuse/inner/assemble.h"

#include <algorithm>
#include <map>
#include <utility>


namespace stretto {
namespace {

bool runs(const Node& n) { return n.op->leaf != Leaf::argument && !n.op->view; }

// Which node reads a value's memory last, seen through views; the end when it is an output. Without entry: nobody.
std::map<Value, NodeId> last_readers(const Graph& g) {
  std::map<Value, NodeId> last;
  const auto touch = [&](Value v, NodeId when) {
    const auto [it, fresh] = last.try_emplace(v, when);
    if (!fresh) it->second = std::max(it->second, when);
  };
  for (Value v : g.outputs) touch(v, NodeId(g.nodes.size()));
  for (NodeId id : node_ids(g) | std::views::reverse)
    for (Value operand : g.node(id).operands) {
      if (!g.node(id).op->view) touch(operand, id);
      for (Value v : values_of(g, id))
        if (const auto it = last.find(v); g.node(id).op->view && it != last.end()) touch(operand, it->second);
    }
  return last;
}

// The value whose memory `v` shows as it is, only under other names.
Value without_renames(const Graph& g, Value v) {
  while (g.node(v).op->view) {
    const Node& n = g.node(v);
    const ViewMap map = n.op->view({g, n}, v.result);
    const DimSet &outer = g.type(n.operands[0]).dims, &inner = g.type(v).dims;
    if (outer.size() != inner.size()) break;
    bool same = true;
    for (std::size_t d = 0; d < inner.size(); ++d)
      same = same && map.from[d] && std::cmp_equal(*map.from[d], d) && (d >= map.start.size() || map.start[d] == 0) &&
             g.size(outer[d]) == g.size(inner[d]);
    if (!same) break;
    v = n.operands[0];
  }
  return v;
}

class Assembler {
 public:
  Assembler(Graph graph, const ResultMemories& results) : results_(results), last_(last_readers(graph)) {
    calls_.graph = std::move(graph);
    for (ResultId r : results.ids()) output_[calls_.graph.outputs[r.value]] = r;
  }

  Calls run() {
    const Graph& g = calls_.graph;
    place_into();
    ArgumentId argument{0};
    for (NodeId id : node_ids(g)) {
      const Node& n = g.node(id);
      if (n.op->leaf == Leaf::argument) {
        at_[{id, 0}] = whole(argument, n.results[0]);
        ++argument.value;
      } else if (n.op->view) {
        for (Value v : values_of(g, id))
          at_[v] = inside(at_.at(n.operands[0]), n.op->view({g, n}, v.result), g.type(v));
      } else {
        call(id);
      }
    }
    return std::move(calls_);
  }

 private:
  using Role = decltype(BodyBuffer::role);
  struct Inside {  // which operand of a stack or concat a value is
    NodeId node;
    int operand;
  };

  Ref whole(Role role, const Type& t) {
    dies_.push_back({});
    return {.buffer = calls_.buffers.push_back({.role = role, .bytes = calls_.graph.bytes(t)}),
            .view = contiguous_view(calls_.graph, t)};
  }
  Ref inside(const Ref& outer, const ViewMap& map, const Type& t) const {
    const i64 start = outer.start + start_of(outer.view, map) * i64(size_of(t.dtype));
    return {outer.buffer, start, sub_view(outer.view, map, t.dims, calls_.graph)};
  }
  const ResultId* output(Value v) const {
    const auto it = output_.find(v);
    return it == output_.end() ? nullptr : &it->second;
  }
  bool accumulated(Value v) const { return output(v) && results_[*output(v)].accumulate; }

  // Operands of stack and concat are made in place, inside the result, where nothing speaks against it.
  void place_into() {
    const Graph& g = calls_.graph;
    for (NodeId id : node_ids(g) | std::views::reverse) {
      if (!g.node(id).op->into) continue;
      for (int k = 0; Value operand : g.node(id).operands) {
        const Value v = without_renames(g, operand);
        if (runs(g.node(v)) && !output(v)) placed_.try_emplace(v, Inside{id, k});
        ++k;
      }
    }
  }

  Ref destination(Value v) {
    if (const auto it = at_.find(v); it != at_.end()) return it->second;  // made early, for an operand placed inside
    const Graph& g = calls_.graph;
    Ref r;
    if (const auto it = placed_.find(v); it != placed_.end()) {
      const Node& outer = g.node(it->second.node);
      r = inside(destination({it->second.node, 0}), outer.op->into({g, outer}, it->second.operand), g.type(v));
    } else {
      r = whole(output(v) ? Role(*output(v)) : Role(), g.type(v));
    }
    std::optional<NodeId>& dies = dies_[*r.buffer];
    dies = std::max(dies, std::optional(last_.at(v)));
    return at_[v] = r;
  }

  // May the result `v` take over the memory of an operand of its node, which dies there?
  bool in_place(Value v, std::size_t operand) const {
    if (placed_.contains(v) || at_.contains(v) || accumulated(v)) return false;
    const Node& n = calls_.graph.node(v);
    const Type& t = calls_.graph.type(v);
    const Ref& from = at_.at(n.operands[operand]);
    const BodyBuffer& b = calls_.buffers[*from.buffer];
    const bool fits = b.temporary() && dies_[*from.buffer] == v.node && from.start == 0 && from.view.contiguous() &&
                      calls_.graph.bytes(t) == b.bytes && from.view.dtype == t.dtype && from.view.dims == t.dims;
    if (!fits) return false;
    // A pointwise kernel may find other operands there, element by element; any other kernel must be alone.
    for (std::size_t k = 0; k < n.operands.size(); ++k)
      if (const Ref& other = at_.at(n.operands[k]); k != operand && other.buffer == from.buffer)
        if (!n.op->elementwise() || !same_elements(other, from)) return false;
    return true;
  }

  void take_over(Value v) {
    const Node& n = calls_.graph.node(v);
    if (n.op->own_memory) return;
    for (std::size_t k = 0; k < n.operands.size(); ++k) {
      const auto named = [&](const auto& p) { return p && std::cmp_equal(p->operand, k) && p->result == v.result; };
      const bool allowed = n.op->elementwise() || std::ranges::any_of(n.op->in_place, named);
      if (!allowed || !in_place(v, k)) continue;
      const Ref same = at_.at(n.operands[k]);
      dies_[*same.buffer] = last_.at(v);  // later, so that no second result takes it
      if (output(v)) calls_.buffers[*same.buffer].role = *output(v);
      at_[v] = same;
      return;
    }
  }

  // Do all operands lie where the result has them? Then nothing is left to do.
  bool all_in_place(NodeId id) {
    const Graph& g = calls_.graph;
    const Node& n = g.node(id);
    if (!last_.contains({id, 0})) return false;
    const Ref whole = destination({id, 0});
    for (int k = 0; Value operand : n.operands) {
      const Ref &is = at_.at(operand), there = inside(whole, n.op->into({g, n}, k++), g.type(operand));
      if (is.buffer != there.buffer || is.start != there.start || is.view.strides != there.view.strides) return false;
    }
    return true;
  }

  void call(NodeId id) {
    const Graph& g = calls_.graph;
    const Node& n = g.node(id);
    if (n.op->into && all_in_place(id)) return;
    KernelCall c{.node = id};
    for (Value v : n.operands) c.in.push_back(at_.at(v));
    for (Value v : values_of(g, id)) {
      if (!last_.contains(v)) {
        c.out.push_back({.view = contiguous_view(g, g.type(v))});
        continue;
      }
      take_over(v);
      c.out.push_back(destination(v));
      c.accumulate = c.accumulate || accumulated(v);
    }
    if (n.op->key) c.key = KeyId(n.op->key(n.attrs).number);
    calls_.scratch = std::max(calls_.scratch, OpCall{g, n}.scratch());
    touch(c.in);
    touch(c.out);
    calls_.calls.push_back(std::move(c));
  }
  void touch(const std::vector<Ref>& refs) {
    const CallId now = calls_.calls.next_id();
    for (const Ref& r : refs) {
      if (!r.buffer) continue;
      std::optional<BodyBuffer::Touched>& touched = calls_.buffers[*r.buffer].touched;
      if (!touched) touched = {now, now};
      touched->last = now;
    }
  }

  const ResultMemories& results_;
  Calls calls_;
  std::map<Value, NodeId> last_;  // reader
  std::map<Value, Ref> at_;
  std::map<Value, ResultId> output_;
  std::map<Value, Inside> placed_;
  IdVector<BufferId, std::optional<NodeId>> dies_;  // the node that reads it last
};

}  // namespace

Calls assemble(Graph g, const ResultMemories& results) { return Assembler(std::move(g), results).run(); }

}  // namespace stretto
