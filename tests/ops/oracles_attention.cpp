// Attention, its gradient, its form with a cache, and rotary positions, from their definitions.
#include <cmath>
#include <optional>

#include "ops/oracle.h"
#include "stretto/ops/attention_grad.h"
#include "stretto/ops/cached_attention.h"
#include "stretto/ops/rotary.h"

namespace stretto::test {
namespace {

// The score of one query and one key, which are operands 0 and 1; none where the query may not see it. `others`: how
// many operands stand before those that say what it sees.
std::optional<double> score(const Element& e, const AttentionAttrs& a, const At& j, int others) {
  const i64 key = j[a.key], own = j[a.query];
  const i64 since = a.since ? i64(e.in(others, j)) : 0;
  if (a.causal && key > own) return {};
  if (a.until && key >= i64(e.in(others + a.since, j))) return {};
  if (a.window > 0 && key <= own - a.window) return {};
  if (key < since || (a.chunk > 0 && (key - since) / a.chunk < (own - since) / a.chunk)) return {};
  const double x = a.scale * e.sum({a.head}, j, [&](const At& d) { return e.in(0, d) * e.in(1, d); });
  return a.softcap > 0 ? a.softcap * std::tanh(x / a.softcap) : x;
}

double weight(const Element& e, const AttentionAttrs& a, const At& j, int others) {
  const std::optional<double> x = score(e, a, j, others);
  return x ? std::exp(*x) : 0;
}

// Operands q, k, v, then since, until and sinks where they are there.
double attention(const Element& e) {
  const AttentionAttrs& a = e.attrs<AttentionAttrs>();
  const double sink = a.sinks ? std::exp(e.in(3 + a.since + a.until)) : 0;
  const double total = sink + e.sum({a.key}, [&](const At& j) { return weight(e, a, j, 3); });
  if (total == 0) return 0;
  if (e.result == 1) return std::log(total);
  return e.sum({a.key}, [&](const At& j) { return weight(e, a, j, 3) * e.in(2, j); }) / total;
}

// Operands q, k, v, o, lse, g, since, until. With p = exp(score - lse) and ds = p * (g v - g o), times the soft cap's
// slope: dq = scale * sum over keys of ds k, dk = scale * sum over queries of ds q, dv = sum over queries of p g.
double attention_grad(const Element& e) {
  const AttentionAttrs& a = e.attrs<AttentionAttrs>();
  const auto p = [&](const At& j) { return weight(e, a, j, 6) / std::exp(e.in(4, j)); };
  const auto slope = [&](const At& j) {
    return a.softcap > 0 ? 1 - std::pow(score(e, a, j, 6).value_or(0) / a.softcap, 2) : 1;
  };
  const auto ds = [&](const At& j) {
    return p(j) * slope(j) * e.sum({a.value}, j, [&](const At& d) { return e.in(5, d) * (e.in(2, d) - e.in(3, d)); });
  };
  if (e.result == 0) return a.scale * e.sum({a.key}, [&](const At& j) { return ds(j) * e.in(1, j); });
  const DimSet queries = without(e.dims(0), e.dims(1));
  if (e.result == 1) return a.scale * e.sum(queries, [&](const At& j) { return ds(j) * e.in(0, j); });
  return e.sum(queries, [&](const At& j) { return p(j) * e.in(5, j); });
}

// Where the run of equal numbers begins.
double starts(const Element& e) {
  const DimId along = e.attrs<StartsAttrs>().along;
  i64 first = e.at[along];
  while (first > 0 && e.in(0, e.at.with(along, first - 1)) == e.in(0)) --first;
  return double(first);
}

// Operands q, k, v, k_cache, v_cache, positions, sinks. New rows replace those of their positions, later ones earlier
// ones.
double cached_attention(const Element& e) {
  const CachedAttentionAttrs& a = e.attrs<CachedAttentionAttrs>();
  const auto kept = [&](int fresh, int cache, const At& j) {
    double value = e.in(cache, j);
    for (i64 row = 0; row < e.size(a.query); ++row)
      if (const At r = j.with(a.query, row); i64(e.in(5, r)) == j[a.cache]) value = e.in(fresh, r);
    return value;
  };
  const i64 own = i64(e.in(5));
  double total = e.node.operands.size() > 6 ? std::exp(e.in(6)) : 0, value = 0;
  for (i64 position = 0; position <= own; ++position) {
    if (a.window > 0 && position <= own - a.window) continue;
    if (a.chunk > 0 && position / a.chunk != own / a.chunk) continue;
    const At j = e.at.with(a.cache, position);
    double x = a.scale * e.sum({a.head}, j, [&](const At& d) { return e.in(0, d) * kept(1, 3, d); });
    if (a.softcap > 0) x = a.softcap * std::tanh(x / a.softcap);
    total += std::exp(x);
    value += std::exp(x) * kept(2, 4, j);
  }
  return value / total;
}

double rotary(const Element& e) {
  const RotaryAttrs& a = e.attrs<RotaryAttrs>();
  const i64 half = i64(a.frequencies.size()), i = e.at[a.head];
  if (i >= 2 * half) return e.in(0);
  const i64 pair = a.interleaved ? i / 2 : i % half, first = a.interleaved ? 2 * pair : pair;
  const i64 second = first + (a.interleaved ? 1 : half);
  const double position = a.positions ? e.in(1) : double(e.at[a.seq]);
  const double angle = position * a.frequencies[std::size_t(pair)] * (a.inverse ? -1 : 1);
  const double x = e.in(0, e.at.with(a.head, first)), y = e.in(0, e.at.with(a.head, second));
  return a.scale * (i == first ? x * std::cos(angle) - y * std::sin(angle) : y * std::cos(angle) + x * std::sin(angle));
}

constexpr NamedOracle attention_table[] = {
    {"attention", attention},
    {"attention_grad", attention_grad},
    {"cached_attention", cached_attention},
    {"rotary", rotary},
    {"starts", starts},
};

}  // namespace

std::span<const NamedOracle> oracles_of_attention() { return attention_table; }

}  // namespace stretto::test
