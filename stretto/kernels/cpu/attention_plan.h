// What the kernels of attention and of its gradient share: loops over heads, masks, positions.
#pragma once
#include <cmath>
#include <limits>

#include "stretto/kernels/cpu/padding.h"
#include "stretto/kernels/cpu/tiles.h"
#include "stretto/ops/attention_blocks.h"

namespace stretto {

struct AttentionPlan {
  Nest heads, groups;  // over what keys and queries share, and over queries' further dims; arrays as listed by callers
  i64 queries = 0, keys = 0, head = 0;
  i64 first = 0;  // how many keys the first query sees, if causal; may be negative
  bool causal = true;
  double scale = 1;
  std::vector<Padding> padding;  // per result

  i64 visible(i64 query) const { return causal ? std::clamp<i64>(first + query, 0, keys) : keys; }
};

// views: q, k, v first; the others have q's or k's dims (lse: q's without head).
template <class Attrs>
AttentionPlan attention_plan(const Call& call, std::initializer_list<const View*> views) {
  const Attrs& a = call.template attrs<Attrs>();
  const View &q = call.in[0], &k = call.in[1];
  const DimSet inner = {a.query, a.key, a.head};
  AttentionPlan p{.heads = valid_nest(without(k.dims, inner), views),
                  .groups = valid_nest(without(without(q.dims, k.dims), inner), views),
                  .queries = q.valid(a.query),
                  .keys = k.valid(a.key),
                  .head = q.valid(a.head),
                  .causal = a.causal,
                  .scale = a.scale};
  const auto offset = [](const View& v, DimId d) { return v.offsets[std::size_t(position(v.dims, d))]; };
  p.first = offset(q, a.query) - offset(k, a.key) + 1;
  for (const View& v : call.out) p.padding.emplace_back(v);
  return p;
}

// Masked scores of a row of `count` visible ones become minus infinity up to the end of the last panel.
template <class T>
i64 mask_row(T* row, i64 count) {
  const i64 end = (count + panel_width<T> - 1) / panel_width<T> * panel_width<T>;
  for (i64 i = count; i < end; ++i) row[i] = -std::numeric_limits<T>::infinity();
  return end;
}
// A tile's last rows see a few keys that its first ones do not: their probabilities are zero.
template <class T>
void clear_beyond(T* row, i64 end) {
  for (i64 i = 0; i < panel_width<T>; ++i) row[end + i] = T(0);
}

}  // namespace stretto
