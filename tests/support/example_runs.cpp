#include "support/example_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace stretto {
namespace {

// Sizes grow by a random factor, the same for equal sizes; integers stay below what they were below. False when
// that is too large or the op's type rule does not allow it (the sizes of a concat must add up).
bool resize(Graph& g, std::mt19937& random) {
  std::map<std::pair<i64, i64>, i64> factor;
  Graph grown = g;
  for (Dim& d : grown.dims) {
    i64& f = factor[{d.size, d.logical}];
    const i64 most = random() % 3 ? 2 : 9;  // few large ones
    if (f == 0) f = 1 + i64(random()) % most;
    const i64 pad = d.logical ? d.size - d.logical : 0;
    d.size = d.size * f + (f > 4 ? 2 - d.size % 2 : 0);  // an even size stays even: some ops need that
    d.logical = pad ? d.size - pad : 0;
  }
  if (!verify(grown).empty()) return false;
  for (const Node& n : grown.nodes)
    for (const Type& t : n.results)
      if (grown.elements(t) > 20000) return false;  // keeps the test short
  g = std::move(grown);
  return true;
}

}  // namespace

void for_each_node(const Op& op, DType type, unsigned rounds,
                   const std::function<void(const Examples&, const Graph&, NodeId, unsigned round)>& f) {
  Examples e;
  e.dtype = type;
  op.examples(e);
  for (unsigned round = 0; round < rounds; ++round) {
    std::mt19937 random(round);
    Graph g = e.builder.graph;
    if (round > 0 && !resize(g, random)) continue;
    for (std::size_t i = 0; i < g.nodes.size(); ++i) {
      if (g.nodes[i].op != &op) continue;
      SCOPED_TRACE(fmt::format("%{} {} round {}", i, g.str({NodeId{std::uint32_t(i)}, 0}), round));
      f(e, g, NodeId{std::uint32_t(i)}, round);
    }
  }
}

void fill(KernelRun& run, const Examples& e) {
  const Node& n = run.call.node;
  for (std::size_t i = 0; i < n.operands.size(); ++i) {
    const auto s = std::find_if(e.sources.begin(), e.sources.end(),
                                [&](const Examples::Source& source) { return source.value == n.operands[i]; });
    if (s != e.sources.end() && s->below > 0)
      run.fill_ids(int(i), s->below);
    else if (run.call.in[i].dtype == i32)
      run.fill_ids(int(i), 2);
    else if (s != e.sources.end())
      run.fill(int(i), s->lo, s->hi);
    else
      run.fill(int(i), 0.1, 0.9);
  }
}

}  // namespace stretto
