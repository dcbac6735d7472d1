// Attention, its gradient, its form with a cache, and rotary positions, from their definitions.
#include <cmath>
#include <numbers>

#include "ops/oracle.h"
#include "stretto/ops/attention_grad.h"
#include "stretto/ops/cached_attention.h"
#include "stretto/ops/rotary.h"

namespace stretto::test {
namespace {

// exp(scale * q k) of one query and one key, 0 where the query may not see it. q and k are operands 0 and 1.
template <class A>
double weight(const Element& e, const A& a, const At& j) {
  if (a.causal && j[a.key] > j[a.query]) return 0;
  return std::exp(a.scale * e.sum({a.head}, j, [&](const At& d) { return e.in(0, d) * e.in(1, d); }));
}

double attention(const Element& e) {
  const AttentionAttrs& a = e.attrs<AttentionAttrs>();
  const double total = e.sum({a.key}, [&](const At& j) { return weight(e, a, j); });
  if (e.result == 1) return std::log(total);
  return e.sum({a.key}, [&](const At& j) { return weight(e, a, j) * e.in(2, j); }) / total;
}

// Operands q, k, v, o, lse, g. With p = exp(score - lse) and ds = p * (g v - g o): dq = scale * sum over keys of ds k,
// dk = scale * sum over queries of ds q, dv = sum over queries of p g.
double attention_grad(const Element& e) {
  const AttentionGradAttrs& a = e.attrs<AttentionGradAttrs>();
  const auto p = [&](const At& j) { return weight(e, a, j) / std::exp(e.in(4, j)); };
  const auto ds = [&](const At& j) {
    return p(j) * e.sum({a.head}, j, [&](const At& d) { return e.in(5, d) * (e.in(2, d) - e.in(3, d)); });
  };
  if (e.result == 0) return a.scale * e.sum({a.key}, [&](const At& j) { return ds(j) * e.in(1, j); });
  const DimSet queries = without(e.dims(0), e.dims(1));
  if (e.result == 1) return a.scale * e.sum(queries, [&](const At& j) { return ds(j) * e.in(0, j); });
  return e.sum(queries, [&](const At& j) { return p(j) * e.in(5, j); });
}

// Operands q, k, v, k_cache, v_cache, positions. New rows replace those of their positions, later ones earlier ones.
double cached_attention(const Element& e) {
  const CachedAttentionAttrs& a = e.attrs<CachedAttentionAttrs>();
  const auto kept = [&](int fresh, int cache, const At& j) {
    double value = e.in(cache, j);
    for (i64 row = 0; row < e.size(a.query); ++row)
      if (const At r = j.with(a.query, row); i64(e.in(5, r)) == j[a.cache]) value = e.in(fresh, r);
    return value;
  };
  const i64 own = i64(e.in(5));
  double total = 0, value = 0;
  for (i64 position = 0; position <= own; ++position) {
    const At j = e.at.with(a.cache, position);
    const double score = e.sum({a.head}, j, [&](const At& d) { return e.in(0, d) * kept(1, 3, d); });
    total += std::exp(a.scale * score);
    value += std::exp(a.scale * score) * kept(2, 4, j);
  }
  return value / total;
}

// Llama 3: turns with more than original / high wavelengths stay, those with less than original / low are `factor` times
// slower, and between the two there is a straight line in the number of wavelengths.
double turn(const RotaryAttrs& a, double slow) {
  if (a.factor == 0) return slow;
  const double waves = a.original_max_position * slow / (2 * std::numbers::pi);
  if (waves > a.high_freq_factor) return slow;
  if (waves < a.low_freq_factor) return slow / a.factor;
  const double smooth = (waves - a.low_freq_factor) / (a.high_freq_factor - a.low_freq_factor);
  return (1 - smooth) * slow / a.factor + smooth * slow;
}

double rotary(const Element& e) {
  const RotaryAttrs& a = e.attrs<RotaryAttrs>();
  const i64 head = e.size(a.head), half = head / 2, i = e.at[a.head], pair = i % half;
  const double position = a.positions ? e.in(1) : double(e.at[a.seq]);
  const double angle = position * turn(a, std::pow(a.base, -2.0 * double(pair) / double(head))) * (a.inverse ? -1 : 1);
  const double x = e.in(0, e.at.with(a.head, pair)), y = e.in(0, e.at.with(a.head, pair + half));
  return i < half ? x * std::cos(angle) - y * std::sin(angle) : y * std::cos(angle) + x * std::sin(angle);
}

constexpr NamedOracle attention_table[] = {
    {"attention", attention},
    {"attention_grad", attention_grad},
    {"cached_attention", cached_attention},
    {"rotary", rotary},
};

}  // namespace

std::span<const NamedOracle> oracles_of_attention() { return attention_table; }

}  // namespace stretto::test
