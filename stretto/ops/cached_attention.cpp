#include "stretto/ops/cached_attention.h"

#include <algorithm>
#include <cmath>

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {
namespace {

bool same_dims(DimSet a, DimSet b) {
  return a.size() == b.size() && std::is_permutation(a.begin(), a.end(), b.begin());
}

std::vector<Type> infer_cached(const OpCall& c) {
  const CachedAttentionAttrs& a = c.attrs<CachedAttentionAttrs>();
  const Type &q = c.in(0), &k = c.in(1), &cache = c.in(3), &at = c.in(5);
  for (int i = 0; i < 5; ++i)
    if (c.in(i).dtype != q.dtype || !is_float(q.dtype))
      throw Error("cached_attention", "{} and {} must have one float type", c.describe(0), c.describe(i))
          .hint("cast one of them: cast(x, f32)");
  if (at.dtype != i32 || at.dims != DimSet{a.query})
    throw Error("cached_attention", "positions {} must be i32 along '{}' alone", c.describe(5),
                c.graph.dim(a.query).name)
        .hint("use t.positions({})", c.graph.dim(a.query).name);
  const auto kept = [&](const Type& t) {
    DimSet dims = without(t.dims, {a.query});
    dims.push_back(a.cache);
    return dims;
  };
  const Type& v = c.in(2);
  const bool fit = contains(k.dims, a.query) && contains(k.dims, a.head) && contains(v.dims, a.value) &&
                   same_dims(without(k.dims, {a.head}), without(v.dims, {a.value})) && same_dims(kept(k), cache.dims) &&
                   same_dims(kept(v), c.in(4).dims) && !contains(q.dims, a.cache) &&
                   std::all_of(k.dims.begin(), k.dims.end(), [&](DimId d) { return contains(q.dims, d); }) &&
                   (c.inputs() == 6 || without(c.in(6).dims, without(q.dims, {a.query, a.head})).empty());
  if (!fit)
    throw Error("cached_attention", "queries {}, keys {}, values {} and caches {} and {} do not fit together",
                c.describe(0), c.describe(1), c.describe(2), c.describe(3), c.describe(4))
        .hint("caches have the dims of keys, with '{}' in place of '{}'", c.graph.dim(a.cache).name,
              c.graph.dim(a.query).name);
  DimSet out = q.dims;
  std::replace(out.begin(), out.end(), a.head, a.value);
  return {{q.dtype, out}};
}

}  // namespace

Tensor cached_attention(Tensor q, Tensor k, Tensor v, Tensor k_cache, Tensor v_cache, Tensor positions,
                        const CachedAttentionOptions& o, Tensor sinks) {
  Builder& b = builder_of("cached_attention", {q, k, v, k_cache, v_cache, positions});
  const DimId query = rules::dim_of("cached_attention", q, o.query),
              cache = rules::dim_of("cached_attention", k_cache, o.cache),
              head = rules::dim_of("cached_attention", q, o.head);
  const double scale = o.scale.value_or(1 / std::sqrt(o.head.valid()));
  const DimId value = o.value ? rules::dim_of("cached_attention", v, *o.value) : head;
  const CachedAttentionAttrs attrs{query, cache, head, value, scale, o.window, o.chunk, o.softcap};
  if (sinks) return b.emit(cached_attention_op, {q, k, v, k_cache, v_cache, positions, sinks}, attrs);
  return b.emit(cached_attention_op, {q, k, v, k_cache, v_cache, positions}, attrs);
}

constinit const Op cached_attention_op{
    .name = "cached_attention",
    .infer = infer_cached,
    .spread =
        [](const OpCall& c) {
          const CachedAttentionAttrs& a = c.attrs<CachedAttentionAttrs>();
          return Spread{.serial = joined({a.query, a.cache, a.head}, {a.value})};
        },
    .cost =
        [](const OpCall& c) {
          Cost cost = c.streaming(0);
          cost.flops = double(c.elements(c.in(0))) * double(c.graph.size(c.attrs<CachedAttentionAttrs>().cache)) * 4;
          return cost;
        },
    .examples =
        [](Examples& e) {
          const Dim b{"b", 2}, s{"s", 3}, kv{"kv", 2}, group{"group", 3}, d{"d", 4}, cache{"cache", 5}, one{"one", 1};
          const CachedAttentionOptions o{.query = s, .cache = cache, .head = d};
          const auto real = [&](Dims dims) { return e.real(std::move(dims)); };
          e.add(cached_attention(real({b, s, kv, group, d}), real({b, s, kv, d}), real({b, s, kv, d}),
                                 real({b, kv, cache, d}), real({b, kv, cache, d}), e.ids({s}, 5), o));
          e.add(cached_attention(real({b, s, kv, d}), real({b, s, kv, d}), real({b, s, kv, d}), real({b, cache, kv, d}),
                                 real({b, cache, kv, d}), e.ids({s}, 4), o));
          CachedAttentionOptions single = o;
          single.query = one;
          single.scale = 0.7;
          e.add(cached_attention(real({one, d}), real({one, d}), real({one, d}), real({cache, d}), real({cache, d}),
                                 e.ids({one}, 5), single));
          CachedAttentionOptions special = o;
          const Dim wide{"wide", 6};
          special.value = wide, special.window = 2, special.softcap = 0.6;
          e.add(cached_attention(real({b, s, kv, group, d}), real({b, s, kv, d}), real({b, s, kv, wide}),
                                 real({b, kv, cache, d}), real({b, kv, cache, wide}), e.ids({s}, 5), special,
                                 real({kv, group})));
          CachedAttentionOptions chunks = o;
          chunks.chunk = 2;
          e.add(cached_attention(real({b, s, kv, d}), real({b, s, kv, d}), real({b, s, kv, d}), real({b, cache, kv, d}),
                                 real({b, cache, kv, d}), e.ids({s}, 5), chunks));
        },
    .scratch =
        [](const OpCall& c) {
          const CachedAttentionAttrs& a = c.attrs<CachedAttentionAttrs>();
          return std::size_t(c.graph.size(a.cache) + c.graph.size(a.head) + c.graph.size(a.value)) *
                 size_of(wide(c.in(0).dtype));
        },
    .no_gradient = true,
    .out_of_range =
        [](const OpCall&, i64 at, i64 room) {
          return Error("cached_attention", "position {} is outside of a cache of {}", at, room)
              .hint("make room for as many tokens as are generated");
        },
};

}  // namespace stretto
