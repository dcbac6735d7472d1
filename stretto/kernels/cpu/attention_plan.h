// What the kernels of attention and of its gradient share: loops over heads, masks, positions, where matrices lie.
#pragma once
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "stretto/kernels/cpu/padding.h"
#include "stretto/kernels/cpu/tiles.h"
#include "stretto/kernels/cpu/with_float.h"
#include "stretto/ops/attention.h"
#include "stretto/ops/attention_blocks.h"

namespace stretto {

// What the queries of a block see: per row its first key and the one after its last. And the first of a row and all
// after it, the last of a row and all before it: tiles beyond are left out.
struct SeenKeys {
  std::array<i64, AttentionBlocks::most_rows> from{}, to{}, least{}, most{};
};

// Parts of attention that cost time, known when kernels are compiled.
struct AttentionKind {
  bool bounded = false, capped = false;  // queries see intervals of their own; scores have a soft cap
};

struct AttentionPlan {
  // Over what keys and queries share, and over queries' further dims; arrays as callers list them: q, k and v first.
  Nest heads, groups;
  std::array<i64, Steps{}.size()> row{}, column{};  // strides of arrays along queries or keys, and along head or value
  i64 queries = 0, keys = 0, head = 0, value = 0;
  i64 first = 0;  // how many keys the first query sees, if causal; may be negative
  bool causal = true;
  double scale = 1;
  i64 window = 0, chunk = 0;
  double softcap = 0;
  struct Bound {  // an operand along queries
    int operand;
    std::size_t array;
    i64 row;  // its stride
  };
  std::optional<Bound> since = {}, until = {};
  i64 first_key = 0;              // where keys begin: the operands are logical
  std::optional<int> sinks = {};  // the operand, if it is there
  std::size_t first_result = 0;   // arrays before this one are operands, in their order
  std::vector<Padding> padding;   // per result

  // Numbers of the operands, from the first query of a head on; null where there is none.
  struct Told {
    const std::int32_t *since, *until;
  };
  // `at`: where the head begins.
  Told told(const Args& args, const Steps& at) const {
    const auto from = [&](const std::optional<Bound>& b) {
      return b ? args.input<std::int32_t>(b->operand) + at[b->array] : nullptr;
    };
    return {from(since), from(until)};
  }
  template <class S>
  Strided<const S> operand(const Args& args, const Steps& at, std::size_t i) const {
    return {args.input<S>(int(i)) + at[i], row[i], column[i]};
  }
  template <class S>
  Strided<S> result(const Args& args, const Steps& at, std::size_t i) const {
    return {args.output<S>(int(i - first_result)) + at[i], row[i], column[i]};
  }

  bool bounded() const { return since || until || window > 0 || chunk > 0; }
  // The one after the last key that a query sees, without and with what was told.
  i64 visible(i64 query) const { return causal ? std::clamp<i64>(first + query, 0, keys) : keys; }
  i64 seen_to(const Told& t, i64 query) const {
    return t.until ? std::clamp<i64>(t.until[query * until->row] - first_key, 0, keys) : visible(query);
  }
  i64 seen_from(const Told& t, i64 query) const {
    const i64 own = first + query - 1;
    i64 start = (t.since ? t.since[query * since->row] : 0) - first_key;
    if (chunk > 0 && own > start) start += (own - start) / chunk * chunk;
    if (window > 0) start = std::max(start, own + 1 - window);
    return std::clamp<i64>(start, 0, keys);
  }
  SeenKeys seen_keys(const Told& t, i64 row, i64 rows) const {
    SeenKeys s;
    for (i64 r = rows - 1; r >= 0; --r) {
      s.from[r] = seen_from(t, row + r);
      s.least[r] = r + 1 < rows ? std::min(s.from[r], s.least[r + 1]) : s.from[r];
    }
    for (i64 r = 0; r < rows; ++r) {
      s.to[r] = seen_to(t, row + r);
      s.most[r] = r > 0 ? std::max(s.to[r], s.most[r - 1]) : s.to[r];
    }
    return s;
  }
};

// How far the rows of a block see. Without intervals of their own that is a matter of their numbers.
template <AttentionKind kind>
struct Reach {
  const AttentionPlan& p;
  const SeenKeys& seen;
  i64 first_row, rows;

  i64 of(i64 r) const { return kind.bounded ? seen.to[r] : p.visible(first_row + r); }
  i64 up_to(i64 r) const { return kind.bounded ? seen.most[r] : p.visible(first_row + r); }  // and rows before it
  i64 of_tile(i64 r) const { return up_to(std::min(r + tile_rows, rows) - 1); }              // that begins with row r
  i64 of_block() const { return up_to(rows - 1); }
  // The first row that sees this key, if not a row from `from` on does.
  i64 first_with(i64 key, i64 from) const {
    if constexpr (!kind.bounded) return p.causal ? std::clamp<i64>(key + 1 - (p.first + first_row), 0, rows) : 0;
    while (from < rows && seen.most[from] <= key) ++from;
    return from;
  }
};

// views: the operands that are matrices, as they stand in the call, then the results; the first three are q, k and v,
// the others have q's or k's dims (lse: q's without head). `others`: how many operands stand before `since` and
// `until`.
inline AttentionPlan attention_plan(const Call& call, std::vector<const View*> views, int others) {
  const AttentionAttrs& a = call.attrs<AttentionAttrs>();
  const View &q = call.in[0], &k = call.in[1];
  AttentionPlan p{.queries = q.valid(a.query),
                  .keys = k.valid(a.key),
                  .head = q.valid(a.head),
                  .value = call.in[2].valid(a.value),
                  .causal = a.causal,
                  .scale = a.scale,
                  .window = a.window,
                  .chunk = a.chunk,
                  .softcap = a.softcap,
                  .first_result = std::size_t(others)};
  for (std::size_t i = 0; i < views.size(); ++i) {
    p.row[i] = views[i]->stride(contains(views[i]->dims, a.key) ? a.key : a.query);
    p.column[i] = views[i]->stride(contains(views[i]->dims, a.head) ? a.head : a.value);
  }
  const auto bound = [&](std::optional<int> at) -> std::optional<AttentionPlan::Bound> {
    if (!at) return {};
    const View& v = call.in[std::size_t(*at)];
    views.push_back(&v);
    return AttentionPlan::Bound{*at, views.size() - 1, v.stride(a.query)};
  };
  p.since = bound(a.since_at(others)), p.until = bound(a.until_at(others));
  if (a.sinks) p.sinks = others + a.since + a.until;
  const DimSet inner = {a.query, a.key, a.head};
  p.heads = valid_nest(without(k.dims, inner), views);
  p.groups = valid_nest(without(without(q.dims, k.dims), inner), views);
  const auto offset = [](const View& v, DimId d) { return v.offsets[position(v.dims, d)]; };
  p.first_key = offset(k, a.key);
  p.first = offset(q, a.query) - p.first_key + 1;
  for (const View& v : call.out) p.padding.emplace_back(v);
  return p;
}

inline AttentionBlocks attention_blocks(const Call& call) {
  const AttentionAttrs& a = call.attrs<AttentionAttrs>();
  return {wide(call.in[0].dtype), call.in[0].size(a.query), call.in[1].size(a.key), call.in[0].size(a.head),
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

// Runs f<S, kind>(plan, blocks, args), S being what is stored.
template <class F>
Runner attention_runner(const Call& call, const AttentionPlan& p, const F& f) {
  return with_stored(call.in[0].dtype, [&]<class S>() -> Runner {
    return with_kind(p, [&]<AttentionKind kind>() -> Runner {
      return
          [=, blocks = attention_blocks(call)](const Args& args) { f.template operator()<S, kind>(p, blocks, args); };
    });
  });
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
// Other rows of a tile see keys that this one does not: its probabilities are zero there, up to a panel after the
// last.
template <class T, AttentionKind kind>
void clear_beyond(T* row, i64 end, i64 of_tile) {
  // Rows that follow each other see few more, unless they have intervals of their own.
  const i64 last = kind.bounded ? std::max(end, (of_tile + panel_width<T> - 1) / panel_width<T> * panel_width<T>) : end;
  for (i64 i = end; i < last + panel_width<T>; ++i) row[i] = T(0);
}

}  // namespace stretto
