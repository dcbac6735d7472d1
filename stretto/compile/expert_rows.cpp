#include "stretto/compile/expert_rows.h"

#include <algorithm>

#include "stretto/base/text.h"
#include "stretto/compile/placed.h"

namespace stretto {
namespace {

double seconds_of(CollectiveKind kind, DType type, i64 elements, const ExpertGroup& g, const Cluster& c) {
  CollectiveShape s{.kind = kind, .dtype = type, .members = g.ranks, .sizes = {elements}};
  if (kind == CollectiveKind::rows) s.rows = CollectiveShape::Rows{.in = elements, .out = elements, .elements = 1};
  return collective_seconds(s, c, g.nodes);
}

// All axes: the mesh's own, then those of the short names, which the mesh of a complete Parallel has already.
Mesh axes_of(const Parallel& p) {
  Mesh m = p.mesh;
  for (const Axis& a : axes_of(p.names))
    if (m.extent(a.name) == 1) m.push_back(a);
  return m;
}

// Neighbours of a group are as many ranks apart as there are along the axes after the experts'.
ExpertGroup group_of_experts(const Parallel& p, const Cluster& c) {
  const auto experts = std::ranges::find(p.layout, "experts", &LayoutEntry::dim);
  const std::string last = experts == p.layout.end() || experts->axes.empty() ? "expert" : experts->axes.back();
  const Mesh axes = axes_of(p);
  int stride = 1;
  for (std::size_t a = axes.size(); a-- > 0 && axes[a].name != last;) stride *= axes[a].size;
  ExpertGroup g{.ranks = expert_ranks(p)};
  std::vector<int> ranks;
  for (int i = 0; i < g.ranks; ++i) ranks.push_back(i * stride);
  g.nodes = spread_of(c, ranks);
  return g;
}

// The tokens of one rank, of all that a microbatch has.
ExpertTraffic of_a_rank(ExpertTraffic t, const Parallel& p) {
  const Mesh axes = axes_of(p);
  i64 ranks = expert_ranks(p);
  for (const char* name : {"replica", "data", "depth", "context"}) ranks *= axes.extent(name);
  t.tokens = std::max<i64>(1, t.tokens / ranks);
  return t;
}

ExpertRowsSeconds seconds_on(const Parallel& p, const ExpertTraffic& t) {
  return expert_rows_seconds(of_a_rank(t, p), group_of_experts(p, *p.cluster), *p.cluster);
}

}  // namespace

ExpertRowsSeconds expert_rows_seconds(const ExpertTraffic& t, const ExpertGroup& g, const Cluster& c) {
  using enum CollectiveKind;
  const i64 chosen = t.tokens * t.top_k;
  const auto takes = [&](CollectiveKind kind, DType type, i64 elements) {
    return seconds_of(kind, type, elements, g, c);
  };
  // A gather's box is what one rank has; both ways have the other direction's collectives in backward.
  const double gathered = takes(gather, t.dtype, t.tokens * t.width) + takes(scatter, t.dtype, t.tokens * t.width);
  const double numbers = takes(gather, f32, chosen) + takes(gather, i32, chosen);
  const double sent = 2 * takes(rows, t.dtype, chosen * t.width) + takes(rows, f32, chosen);
  return {.gather = 2 * (gathered + numbers), .exchange = 2 * sent + takes(gather, i32, chosen)};
}

ExchangesRows exchanges_by_cost(const Parallel& p) {
  if (!p.cluster) return {};
  return [p](const ExpertTraffic& t) { return expert_ranks(p) > 1 && seconds_on(p, t).exchange_is_faster(); };
}

std::optional<std::string> expert_rows_reason(const Compiled& c) {
  const Parallel& p = c.parallel;
  if (!c.experts || expert_ranks(p) < 2) return {};
  const bool sent = !c.exchanges.empty();
  const std::string how = sent ? "exchanged" : "gathered";
  if (p.expert_rows != ExpertRows::automatic) return fmt::format("rows are {}, as expert_rows says", how);
  if (p.cluster && expert_rows(p, c.training) == ExpertRows::automatic) {
    const ExpertRowsSeconds s = seconds_on(p, *c.experts);
    return fmt::format("rows are {}: {} of collectives per layer and microbatch predicted, {} if {}", how,
                       human_seconds(sent ? s.exchange : s.gather), human_seconds(sent ? s.gather : s.exchange),
                       sent ? "gathered" : "exchanged");
  }
  if (expert_rows(p, c.training) == ExpertRows::gather) return "rows are gathered: an exchange would be refused";
  return fmt::format("rows are {}, which sends {}: {} ranks share experts, a token has {}", how,
                     expert_ranks(p) == c.experts->top_k ? "as much" : "less", expert_ranks(p), c.experts->top_k);
}

}  // namespace stretto
