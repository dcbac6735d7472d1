#include "stretto/ir/graph.h"

#include <algorithm>

#include "stretto/ir/op.h"

namespace stretto {

i64 Graph::elements(const Type& t) const {
  i64 n = 1;
  for (DimId d : t.dims) n *= size(d);
  return n;
}

std::size_t Graph::bytes(const Type& t) const { return elements(t) * size_of(t.dtype); }

Dims Graph::named(const DimSet& set) const {
  Dims r;
  for (DimId d : set) r.push_back(dim(d));
  return r;
}

std::string_view Graph::origin(DimId d) const {
  const Dim* at = &dim(d);
  for (std::size_t steps = 0; steps < dims.size() && !at->parent.empty(); ++steps) {
    const auto it = std::find_if(dims.begin(), dims.end(), [&](const Dim& other) { return other.name == at->parent; });
    if (it == dims.end()) return at->parent;
    at = &*it;
  }
  return at->name;
}

u64 Graph::hash() const {
  u64 h = hash_of(nodes.size(), dims.size());
  for (const Dim& d : dims) {
    hash_into(h, std::string_view(d.name));
    hash_into(h, d.size);
    hash_into(h, d.logical);
    hash_into(h, d.first);
  }
  for (const Node& n : nodes) {
    hash_into(h, n.op->name);
    hash_into(h, n.attrs.hash());
    for (Value v : n.operands) hash_into(h, hash_of(v.node.value, v.result));
    for (const Type& t : n.results) {
      hash_into(h, t.dtype);
      for (DimId d : t.dims) hash_into(h, d.value);
    }
  }
  for (Value v : outputs) hash_into(h, hash_of(v.node.value, v.result));
  return h;
}

std::vector<Fault> verify(const Graph& g) {
  std::vector<Fault> faults;
  const auto bad = [&](std::size_t i, std::string what) {
    faults.push_back({fmt::format("verify %{} {}", i, g.nodes[i].op ? g.nodes[i].op->name : "?"), std::move(what),
                      "this graph was not made by Builder"});
  };
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    const Node& n = g.nodes[i];
    if (!n.op) {
      bad(i, "has no op");
      continue;
    }
    bool sound = true;
    for (Value v : n.operands)
      if (v.node.value >= i || v.result >= g.node(v).results.size())
        bad(i, fmt::format("uses %{}:{} which is not made before it", v.node.value, v.result)), sound = false;
    for (const Type& t : n.results)
      for (DimId d : t.dims)
        if (d.value >= g.dims.size()) bad(i, fmt::format("has an unknown dim {}", d.value)), sound = false;
    if (n.scope >= g.scopes.size()) bad(i, "has an unknown scope"), sound = false;
    if (!sound) continue;
    Node again = n;
    again.results.clear();
    try {
      if (n.op->infer({g, again}) != n.results) bad(i, "has result types that its type rule does not give");
    } catch (const Error& e) {
      bad(i, e.what());
    }
  }
  for (Value v : g.outputs)
    if (v.node.value >= g.nodes.size() || v.result >= g.node(v).results.size())
      faults.push_back({"verify outputs", fmt::format("%{}:{} does not exist", v.node.value, v.result), ""});
  return faults;
}

namespace {
Graph pruned(const Graph& g, const Op* kept, MovedNodes* moved) {
  std::vector<bool> needed(g.nodes.size(), false);
  for (std::size_t i = 0; i < g.nodes.size(); ++i) needed[i] = kept && g.nodes[i].op == kept;
  for (Value v : g.outputs) needed[v.node.value] = true;
  for (std::size_t i = g.nodes.size(); i-- > 0;)
    if (needed[i])
      for (Value v : g.nodes[i].operands) needed[v.node.value] = true;
  Graph out{.dims = g.dims, .nodes = {}, .outputs = {}, .scopes = g.scopes};
  MovedNodes to(g.nodes.size());
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    if (!needed[i]) continue;
    to[i] = NodeId(out.nodes.size());
    out.nodes.push_back(g.nodes[i]);
    for (Value& v : out.nodes.back().operands) v.node = to[v.node.value].value();
  }
  for (Value v : g.outputs) out.outputs.push_back({to[v.node.value].value(), v.result});
  if (moved) *moved = std::move(to);
  return out;
}
}  // namespace

Graph prune(const Graph& g, MovedNodes* moved) { return pruned(g, nullptr, moved); }
Graph prune_keeping(const Graph& g, const Op& kept, MovedNodes* moved) { return pruned(g, &kept, moved); }

std::size_t OpCall::scratch() const { return node.op->scratch ? node.op->scratch(*this) : 0; }

Cost OpCall::streaming(double per_element) const {
  Cost c;
  for (int i = 0; i < inputs(); ++i) c.read += graph.bytes(in(i));
  for (const Type& t : node.results) c.written += graph.bytes(t);
  c.flops = per_element * graph.elements(out());
  return c;
}

void Examples::add(std::initializer_list<Tensor> results) {
  Case c;
  for (const Tensor& t : results) c.results.push_back(t.value);
  cases.push_back(std::move(c));
}

}  // namespace stretto
