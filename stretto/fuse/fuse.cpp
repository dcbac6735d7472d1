#include <algorithm>
#include <map>

#include "stretto/fuse/calls.h"
#include "stretto/ops/ops.h"

namespace stretto {
namespace {

using Kind = BodyBuffer::Kind;
constexpr int never = -1;

bool runs(const Node& n) { return n.op->leaf != Leaf::argument && !n.op->view; }

// Uses of every value, seen through views: who reads the memory last.
struct Uses {
  std::map<Value, int> last;   // node index; outputs count as the end
  std::map<Value, int> count;  // direct users, outputs included
  int of(Value v) const {
    const auto it = last.find(v);
    return it == last.end() ? never : it->second;
  }
};

Uses uses_of(const Graph& g) {
  Uses u;
  const auto touch = [&](Value v, int when) {
    const auto [it, fresh] = u.last.try_emplace(v, when);
    if (!fresh) it->second = std::max(it->second, when);
  };
  for (Value v : g.outputs) touch(v, int(g.nodes.size())), ++u.count[v];
  for (std::size_t i = g.nodes.size(); i-- > 0;) {
    const Node& n = g.nodes[i];
    for (Value v : n.operands) {
      ++u.count[v];
      if (!n.op->view)
        touch(v, int(i));
      else
        for (std::size_t r = 0; r < n.results.size(); ++r)
          if (const int when = u.of({NodeId{std::uint32_t(i)}, std::uint8_t(r)}); when != never) touch(v, when);
    }
  }
  return u;
}

// The output becomes a copy of what it was, made after everything else.
void append_copy(Graph& g, std::size_t output) {
  const Value v = g.outputs[output];
  const Type type = g.type(v);
  g.nodes.push_back({.op = &copy_op, .operands = {v}, .results = {type}});
  g.outputs[output] = {NodeId{std::uint32_t(g.nodes.size() - 1)}, 0};
}

// Accumulated results come straight out of a kernel that can add, and are read by nobody else; others get a copy that
// adds.
Graph with_accumulation(Graph g, const std::vector<bool>& accumulate) {
  Uses u = uses_of(g);
  for (std::size_t j = 0; j < g.outputs.size(); ++j) {
    const Value v = g.outputs[j];
    const Node& n = g.node(v);
    if (!accumulate[j] || (n.op->accumulates && n.results.size() == 1 && u.count[v] == 1)) continue;
    append_copy(g, j);
  }
  return g;
}

// Does a pointwise kernel read of `from` just the element that it writes to `to`? Only then may the two share memory:
// another start or other strides would show elements that are written already.
bool same_elements(const Ref& from, const Ref& to) {
  if (from.start != to.start) return false;
  for (std::size_t d = 0; d < to.view.dims.size(); ++d)
    if (to.view.sizes[d] > 1 && from.view.stride(to.view.dims[d]) != to.view.strides[d]) return false;
  return true;
}

// Results that take over an argument's memory and are written while somebody still has to read the argument. A
// pointwise kernel may read and write the same element in one call; so may a sum over ranks.
std::vector<std::size_t> written_too_early(const Calls& c, const std::vector<int>& same_memory) {
  std::vector<std::size_t> early;
  for (std::size_t j = 0; j < same_memory.size(); ++j) {
    if (same_memory[j] < 0) continue;
    const auto is_result = [&](const BodyBuffer& b) { return b.kind == Kind::result && b.index == j; };
    const auto is_argument = [&](const BodyBuffer& b) {
      return b.kind == Kind::argument && int(b.index) == same_memory[j];
    };
    const auto result = std::find_if(c.buffers.begin(), c.buffers.end(), is_result);
    const auto argument = std::find_if(c.buffers.begin(), c.buffers.end(), is_argument);
    STRETTO_ASSERT(result != c.buffers.end() && argument != c.buffers.end());
    const Node& writer = c.graph.node(c.calls[std::size_t(result->first)].node);
    const KernelCall& call = c.calls[std::size_t(result->first)];
    const bool added_up =
        writer.op->collective_kind == CollectiveKind::reduce && call.in[0].start == 0 && call.in[0].view.contiguous();
    bool in_one_call = writer.op->elementwise() || added_up;
    for (const Ref& r : call.in)
      if (&c.buffers[r.buffer] == &*argument)
        for (const Ref& out : call.out)
          if (out.buffer != Ref::none && &c.buffers[out.buffer] == &*result && !same_elements(r, out))
            in_one_call = false;
    if (argument->last > result->first || (argument->last == result->first && !in_one_call)) early.push_back(j);
  }
  return early;
}

class Assembler {
 public:
  Assembler(Graph graph, const std::vector<bool>& accumulate) : uses_(uses_of(graph)), accumulate_(accumulate) {
    calls_.graph = std::move(graph);
  }

  Calls run() {
    const Graph& g = calls_.graph;
    for (std::size_t j = 0; j < g.outputs.size(); ++j) output_[g.outputs[j]] = int(j);
    place_into();
    std::uint32_t arguments = 0;
    for (std::size_t i = 0; i < g.nodes.size(); ++i) {
      const Node& n = g.nodes[i];
      const NodeId id{std::uint32_t(i)};
      if (n.op->leaf == Leaf::argument) {
        at_[{id, 0}] = whole(new_buffer(Kind::argument, arguments++, n.results[0]), n.results[0]);
      } else if (n.op->view) {
        for (std::size_t r = 0; r < n.results.size(); ++r)
          at_[{id, std::uint8_t(r)}] = inside(at_.at(n.operands[0]), n.op->view({g, n}, int(r)), n.results[r]);
      } else {
        call(id);
      }
    }
    return std::move(calls_);
  }

 private:
  std::uint32_t new_buffer(Kind kind, std::uint32_t index, const Type& t) {
    calls_.buffers.push_back(
        {.kind = kind, .index = index, .bytes = calls_.graph.bytes(t), .first = never, .last = never});
    dies_.push_back(never);
    return std::uint32_t(calls_.buffers.size() - 1);
  }
  Ref whole(std::uint32_t buffer, const Type& t) const { return {buffer, 0, contiguous_view(calls_.graph, t)}; }
  Ref inside(const Ref& outer, const ViewMap& map, const Type& t) const {
    const i64 start = outer.start + start_of(outer.view, map) * i64(size_of(t.dtype));
    return {outer.buffer, start, sub_view(outer.view, map, t.dims, calls_.graph)};
  }

  // The value whose memory `v` shows as it is, only under other names.
  Value behind_renames(Value v) const {
    const Graph& g = calls_.graph;
    while (g.node(v).op->view) {
      const Node& n = g.node(v);
      const ViewMap map = n.op->view({g, n}, v.result);
      const Type &outer = g.type(n.operands[0]), &inner = g.type(v);
      bool same = outer.dims.size() == inner.dims.size();
      for (std::size_t d = 0; d < inner.dims.size() && same; ++d)
        same = map.from[d] == int(d) && (d >= map.start.size() || map.start[d] == 0) &&
               g.size(outer.dims[d]) == g.size(inner.dims[d]);
      if (!same) break;
      v = n.operands[0];
    }
    return v;
  }

  // Operands of stack and concat are made in place, inside the result, where nothing speaks against it.
  void place_into() {
    const Graph& g = calls_.graph;
    for (std::size_t i = g.nodes.size(); i-- > 0;) {
      const Node& n = g.nodes[i];
      if (!n.op->into) continue;
      for (std::size_t k = 0; k < n.operands.size(); ++k) {
        const Value v = behind_renames(n.operands[k]);
        if (runs(g.node(v)) && !output_.contains(v) && !placed_.contains(v))
          placed_[v] = {NodeId{std::uint32_t(i)}, int(k)};
      }
    }
  }

  Ref destination(NodeId id, int result) {
    const Value v{id, std::uint8_t(result)};
    if (const auto it = at_.find(v); it != at_.end()) return it->second;  // made early, for an operand placed inside
    const Graph& g = calls_.graph;
    const Type& t = g.type(v);
    Ref r;
    if (const auto it = placed_.find(v); it != placed_.end()) {
      const auto [outer, operand] = it->second;
      r = inside(destination(outer, 0), g.node(outer).op->into({g, g.node(outer)}, operand), t);
    } else if (const auto out = output_.find(v); out != output_.end()) {
      r = whole(new_buffer(Kind::result, std::uint32_t(out->second), t), t);
    } else {
      r = whole(new_buffer(Kind::temporary, 0, t), t);
    }
    dies_[r.buffer] = std::max(dies_[r.buffer], uses_.of(v));
    return at_[v] = r;
  }

  // May `result` of node `index` take over the memory of `operand`, which dies there?
  bool in_place(const Node& n, int index, std::size_t operand, std::size_t result,
                const std::vector<std::uint32_t>& taken) const {
    const Value v{NodeId{std::uint32_t(index)}, std::uint8_t(result)};
    if (placed_.contains(v) || at_.contains(v)) return false;
    const auto out = output_.find(v);
    if (out != output_.end() && accumulate_[std::size_t(out->second)]) return false;
    const Ref& from = at_.at(n.operands[operand]);
    const BodyBuffer& b = calls_.buffers[from.buffer];
    const Type& t = n.results[result];
    const bool fits = b.kind == Kind::temporary && dies_[from.buffer] == index && from.start == 0 &&
                      from.view.contiguous() && calls_.graph.bytes(t) == b.bytes && from.view.dtype == t.dtype &&
                      from.view.dims == t.dims && std::find(taken.begin(), taken.end(), from.buffer) == taken.end();
    if (!fits) return false;
    // A pointwise kernel may find other operands there, element by element; any other kernel must be alone.
    for (std::size_t k = 0; k < n.operands.size(); ++k)
      if (const Ref& other = at_.at(n.operands[k]); k != operand && other.buffer == from.buffer)
        if (!n.op->elementwise() || !same_elements(other, from)) return false;
    return true;
  }

  void take_over(const Node& n, NodeId id, std::size_t r, std::vector<std::uint32_t>& taken) {
    if (n.op->own_memory) return;
    const Value v{id, std::uint8_t(r)};
    for (std::size_t k = 0; k < n.operands.size(); ++k) {
      const auto pair = std::pair(std::int8_t(k), std::int8_t(r));
      const bool allowed =
          n.op->elementwise() || std::find(n.op->in_place.begin(), n.op->in_place.end(), pair) != n.op->in_place.end();
      if (!allowed || !in_place(n, int(id.value), k, r, taken)) continue;
      const Ref same = at_.at(n.operands[k]);
      taken.push_back(same.buffer);
      dies_[same.buffer] = uses_.of(v);
      if (const auto out = output_.find(v); out != output_.end()) {
        calls_.buffers[same.buffer].kind = Kind::result;
        calls_.buffers[same.buffer].index = std::uint32_t(out->second);
      }
      at_[v] = same;
      return;
    }
  }

  void call(NodeId id) {
    const Graph& g = calls_.graph;
    const Node& n = g.node(id);
    KernelCall c{.node = id};
    for (Value v : n.operands) c.in.push_back(at_.at(v));
    std::vector<std::uint32_t> taken;
    for (std::size_t r = 0; r < n.results.size(); ++r) {
      const Value v{id, std::uint8_t(r)};
      if (uses_.of(v) == never) {
        c.out.push_back({.view = contiguous_view(g, n.results[r])});
        continue;
      }
      take_over(n, id, r, taken);
      c.out.push_back(destination(id, int(r)));
      if (const auto out = output_.find(v); out != output_.end() && accumulate_[std::size_t(out->second)])
        c.accumulate = true;
    }
    if (n.op->key) c.key = std::stoi(n.op->key(n.attrs));
    if (n.op->scratch) calls_.scratch = std::max(calls_.scratch, n.op->scratch({g, n}));
    const int when = int(calls_.calls.size());
    for (const auto* refs : {&c.in, &c.out})
      for (const Ref& r : *refs) {
        if (r.buffer == Ref::none) continue;
        BodyBuffer& b = calls_.buffers[r.buffer];
        if (b.first == never) b.first = when;
        b.last = when;
      }
    calls_.calls.push_back(std::move(c));
  }

  Uses uses_;
  const std::vector<bool>& accumulate_;
  Calls calls_;
  std::map<Value, Ref> at_;
  std::map<Value, int> output_;
  std::map<Value, std::pair<NodeId, int>> placed_;  // value -> (stack or concat node, operand)
  std::vector<int> dies_;                           // per buffer: the node that reads it last
};

}  // namespace

Calls fuse(const Graph& body, const FuseOptions& options) {
  STRETTO_ASSERT(options.accumulate.size() == body.outputs.size() && options.same_memory.size() == body.outputs.size());
  Graph g = with_accumulation(prune_keeping(body, input_op), options.accumulate);
  std::vector<Value> alone;
  for (std::size_t j = 0; j < g.outputs.size(); ++j)
    if (options.accumulate[j]) alone.push_back(g.outputs[j]);
  Calls c = Assembler(group_pointwise(g, alone), options.accumulate).run();
  if (const std::vector<std::size_t> early = written_too_early(c, options.same_memory); !early.empty()) {
    for (std::size_t j : early) append_copy(g, j);
    c = Assembler(group_pointwise(g, alone), options.accumulate).run();
    STRETTO_ASSERT(written_too_early(c, options.same_memory).empty());
  }
  refuse(verify(c));
  return c;
}

std::vector<Fault> verify(const Calls& c) {
  std::vector<Fault> faults;
  std::vector<char> written(c.buffers.size(), 0);
  for (std::size_t b = 0; b < c.buffers.size(); ++b) written[b] = c.buffers[b].kind == Kind::argument;
  for (const KernelCall& k : c.calls) {
    const Node& n = c.graph.node(k.node);
    const std::string where = fmt::format("fuse {}", n.op->name);
    const auto check = [&](const Ref& r, const Type& t, std::string_view role) {
      i64 reach = r.start + i64(size_of(t.dtype));
      for (std::size_t d = 0; d < r.view.dims.size(); ++d)
        reach += (r.view.sizes[d] - 1) * r.view.strides[d] * i64(size_of(t.dtype));
      if (r.start < 0 || reach > i64(c.buffers[r.buffer].bytes))
        faults.push_back(fault(where, "", "{} reaches beyond its buffer", role));
      if (r.view.dims != t.dims) faults.push_back(fault(where, "", "{} has other dims than its view", role));
    };
    for (std::size_t i = 0; i < k.in.size(); ++i) {
      if (k.in[i].buffer == Ref::none || !written[k.in[i].buffer])
        faults.push_back(fault(where, "", "operand {} is read before it is written", i));
      else
        check(k.in[i], c.graph.type(n.operands[i]), "an operand");
    }
    for (const Ref& out : k.out)
      for (const Ref& in : k.in)
        if (out.buffer != Ref::none && in.buffer == out.buffer && !n.op->into && out.start == 0 &&
            out.view.elements() * i64(size_of(out.view.dtype)) == i64(c.buffers[out.buffer].bytes) &&
            !same_elements(in, out))
          faults.push_back(fault(where, "", "a result is written over elements of an operand that are read later"));
    for (std::size_t r = 0; r < k.out.size(); ++r)
      if (k.out[r].buffer != Ref::none) check(k.out[r], n.results[r], "a result"), written[k.out[r].buffer] = 1;
  }
  return faults;
}

std::string Calls::str() const {
  std::string s;
  const auto refs = [&](const std::vector<Ref>& list) {
    std::string t;
    for (const Ref& r : list) {
      if (!t.empty()) t += ", ";
      if (r.buffer == Ref::none)
        t += "-";
      else
        t += fmt::format("{}{}{}", "art"[int(buffers[r.buffer].kind)], r.buffer,
                         r.start ? fmt::format("+{}", r.start) : "");
    }
    return t;
  };
  for (const KernelCall& c : calls) {
    const Node& n = graph.node(c.node);
    const std::string attrs = n.attrs.str(graph);
    s += fmt::format("  {} = {}({}){}{}{}\n", refs(c.out), n.op->name, refs(c.in), attrs.empty() ? "" : " ", attrs,
                     c.accumulate ? " accumulate" : "");
  }
  return s;
}

}  // namespace stretto
