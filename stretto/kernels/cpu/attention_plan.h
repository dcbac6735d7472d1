// What the kernels of attention and of its gradient share: loops over heads, masks, positions.
#pragma once
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "stretto/kernels/cpu/padding.h"
#include "stretto/kernels/cpu/tiles.h"
#include "stretto/ops/attention.h"
#include "stretto/ops/attention_blocks.h"

namespace stretto {

// The first keys that the queries of a block see, and of every row and those after it the first of all: tiles before
// that are left out.
struct FirstKeys {
  std::array<i64, AttentionBlocks::most_rows> of{}, least{};
};

// Parts of attention that cost time, known when kernels are compiled.
struct AttentionKind {
  bool bounded = false, capped = false;  // queries have first keys; scores have a soft cap
};

struct AttentionPlan {
  Nest heads, groups;  // over what keys and queries share, and over queries' further dims; arrays as listed by callers
  i64 queries = 0, keys = 0, head = 0, value = 0;
  i64 first = 0;  // how many keys the first query sees, if causal; may be negative
  bool causal = true;
  double scale = 1;
  i64 window = 0;
  double softcap = 0;
  std::optional<i64> since_row = {};  // of the operand `since`: its stride along queries
  i64 first_key = 0;                  // where keys begin: `since` is logical
  std::vector<Padding> padding;       // per result

  bool bounded() const { return since_row || window > 0; }
  i64 visible(i64 query) const { return causal ? std::clamp<i64>(first + query, 0, keys) : keys; }
  // `since`: at the first query.
  i64 first_seen(const std::int32_t* since, i64 query) const {
    const i64 told = since_row ? since[query * *since_row] - first_key : 0;
    const i64 near = window > 0 ? first + query - window : 0;
    return std::clamp<i64>(std::max(told, near), 0, keys);
  }
  FirstKeys first_keys(const std::int32_t* since, i64 row, i64 rows) const {
    FirstKeys f;
    for (i64 r = rows - 1; r >= 0; --r) {
      f.of[r] = first_seen(since, row + r);
      f.least[r] = r + 1 < rows ? std::min(f.of[r], f.least[r + 1]) : f.of[r];
    }
    return f;
  }
};

// views: q, k, v first; the others have q's or k's dims (lse: q's without head). `since` is operand number `own`, if it
// is there.
inline AttentionPlan attention_plan(const Call& call, std::initializer_list<const View*> views, int own) {
  const AttentionAttrs& a = call.attrs<AttentionAttrs>();
  const View &q = call.in[0], &k = call.in[1];
  const DimSet inner = {a.query, a.key, a.head};
  AttentionPlan p{.heads = valid_nest(without(k.dims, inner), views),
                  .groups = valid_nest(without(without(q.dims, k.dims), inner), views),
                  .queries = q.valid(a.query),
                  .keys = k.valid(a.key),
                  .head = q.valid(a.head),
                  .value = call.in[2].valid(a.value),
                  .causal = a.causal,
                  .scale = a.scale,
                  .window = a.window,
                  .softcap = a.softcap};
  const auto offset = [](const View& v, DimId d) { return v.offsets[position(v.dims, d)]; };
  p.first_key = offset(k, a.key);
  p.first = offset(q, a.query) - p.first_key + 1;
  if (a.since) p.since_row = call.in[own].stride(a.query);
  for (const View& v : call.out) p.padding.emplace_back(v);
  return p;
}

inline AttentionBlocks attention_blocks(const Call& call) {
  const AttentionAttrs& a = call.attrs<AttentionAttrs>();
  return {call.in[0].dtype, call.in[0].size(a.query), call.in[1].size(a.key), call.in[0].size(a.head),
          call.in[2].size(a.value)};
}

// f with the plan's kind, known at compile time.
template <class F>
auto with_kind(const AttentionPlan& p, const F& f) {
  const bool capped = p.softcap > 0;
  if (p.bounded()) {
    return capped ? f.template operator()<AttentionKind{true, true}>()
                  : f.template operator()<AttentionKind{true, false}>();
  }
  return capped ? f.template operator()<AttentionKind{false, true}>()
                : f.template operator()<AttentionKind{false, false}>();
}

// Masked scores of a row of `count` visible ones become minus infinity up to the end of the last panel.
template <class T>
i64 mask_row(T* row, i64 count) {
  const i64 end = (count + panel_width<T> - 1) / panel_width<T> * panel_width<T>;
  for (i64 i = count; i < end; ++i) row[i] = -std::numeric_limits<T>::infinity();
  return end;
}
// Scores before `low` are of keys that a query does not see: nothing up to `base`, where a panel begins, and minus
// infinity from there.
template <class T>
void hide_before(T* row, i64 base, i64 low) {
  std::fill_n(row, base, T(0));
  if (base < low) std::fill(row + base, row + low, -std::numeric_limits<T>::infinity());
}
// A tile's last rows see a few keys that its first ones do not: their probabilities are zero.
template <class T>
void clear_beyond(T* row, i64 end) {
  for (i64 i = 0; i < panel_width<T>; ++i) row[end + i] = T(0);
}

}  // namespace stretto
