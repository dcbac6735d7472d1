// Per head: a block of queries against all keys it sees, block by block, with a running maximum and sum.
#include "stretto/ops/attention.h"

#include "stretto/kernels/cpu/attention_plan.h"
#include "stretto/kernels/cpu/exp_row.h"
#include "stretto/kernels/cpu/pauses.h"

namespace stretto {
namespace {

enum : std::size_t { Q, K, V, O, L, X };  // arrays of the nests; X: sinks
using Plan = AttentionPlan;

Plan plan_of(const Call& call) {
  const bool sinks = call.attrs<AttentionAttrs>().sinks;
  const View &o = call.out[0], &l = call.out[1];
  return attention_plan(call, {&call.in[0], &call.in[1], &call.in[2], &o, &l, sinks ? &call.in.back() : &l}, 3);
}

// One head's packed keys and values, and the workspace for a block of queries.
template <class T>
struct Work {
  AttentionBlocks b;
  T *keys, *values, *scores, *q, *out, *top, *sum;
  T sink = -std::numeric_limits<T>::infinity();  // of the head
  Work(const AttentionBlocks& blocks, T* at) : b(blocks) {
    const auto take = [&](i64 n) { return std::exchange(at, at + n); };
    keys = take(b.head * b.keys);
    values = take(b.value * b.keys);
    scores = take(b.rows * b.pitch);
    q = take(b.rows * b.head);
    out = take(b.rows * b.value);
    top = take(b.rows);
    sum = take(b.rows);
  }
};

// The new maximum and sum of a row; what was summed before is scaled to the new maximum.
template <class T>
void move_top(const Work<T>& w, i64 r, T top, T sum) {
  const T before = w.top[r];
  if (before != -std::numeric_limits<T>::infinity()) {
    const T factor = vm::exp(before - top);
    sum += w.sum[r] * factor;
    for (i64 i = 0; i < w.b.value && factor != 1; ++i) w.out[r * w.b.value + i] *= factor;
  }
  w.top[r] = top;
  w.sum[r] = sum;
}

template <class T>
void cap_row(T* row, i64 n, T cap) {
#pragma GCC ivdep
  for (i64 i = 0; i < n; ++i) row[i] = cap * vm::tanh(row[i] / cap);
}

// Rows of scores of the keys from `key` on become exp(score - maximum so far), and 0 where the query sees no key.
template <class T, AttentionKind kind>
void soften(const Plan& p, const Work<T>& w, const Reach<kind>& reach, i64 key, bool begins) {
  const auto within = [&](i64 k) { return std::clamp<i64>(k - key, 0, w.b.columns); };
  for (i64 r = 0; r < reach.rows; ++r) {
    T* row = w.scores + r * w.b.pitch;
    const i64 count = within(reach.of(r));
    const i64 low = kind.bounded ? std::min(within(reach.seen.from[r]), count) : 0;
    const i64 base = kind.bounded ? low / panel_width<T> * panel_width<T> : 0;
    if constexpr (kind.capped) cap_row(row + base, count - base, T(p.softcap));
    const i64 end = mask_row(row, count);
    clear_beyond<T, kind>(row, end, kind.bounded ? within(reach.of_tile(r / tile_rows * tile_rows)) : 0);
    if (begins) w.top[r] = w.sink, w.sum[r] = w.sink > -std::numeric_limits<T>::infinity();
    if (count == 0) continue;
    if constexpr (kind.bounded) {
      if (low == count) {
        std::fill_n(row, end, T(0));
        continue;
      }
      hide_before(row, base, low);
    }
    const T top = std::max(w.top[r], lane_max(end - base, row + base));
    move_top(w, r, top, exp_row(row + base, row + base, end - base, top));
  }
}

template <class T, AttentionKind kind>
void queries_block(const Plan& p, const Work<T>& w, const Reach<kind>& reach) {
  constexpr i64 width = panel_width<T>;
  const AttentionBlocks& b = w.b;
  const SeenKeys& keys = reach.seen;
  const i64 seen = reach.of_block(), start = kind.bounded ? keys.least[0] / (3 * width) * (3 * width) : 0;
  for (i64 key = start; key == start || key < seen; key += b.columns) {
    const i64 end = std::min(seen - key, b.columns);
    for (i64 c = 0; c < end; c += width)
      for (i64 r = 0; r < reach.rows; r += tile_rows)
        if (key + c < reach.of_tile(r) && (!kind.bounded || key + c + width > keys.least[r]))
          multiply_tile<T, false>(p.head, w.q + r * b.head, b.head, w.keys + (key + c) * p.head,
                                  w.scores + r * b.pitch + c, b.pitch, false);
    soften<T, kind>(p, w, reach, key, key == start);
    for (i64 h = 0; h < b.value; h += width)
      for (i64 r = 0; r < reach.rows; r += tile_rows) {
        const i64 k = std::clamp<i64>(reach.of_tile(r) - key, 0, b.columns);
        const i64 low = kind.bounded ? std::clamp<i64>(keys.least[r] - key, 0, k) : 0;
        if (k > low || key == start)
          multiply_tile<T, false>(k - low, w.scores + r * b.pitch + low, b.pitch,
                                  w.values + h * b.keys + (key + low) * width, w.out + r * b.value + h, b.value,
                                  key > start);
      }
  }
}

// A block of queries of one head, from and to their places.
template <class S, AttentionKind kind, class T = Wide<S>>
void block_of_head(const Plan& p, const Work<T>& w, const Args& args, const Steps& in, i64 row) {
  const i64 rows = std::min(w.b.rows, p.queries - row);
  const i64 padded = (rows + tile_rows - 1) / tile_rows * tile_rows;
  pack_rows(p.operand<S>(args, in, Q).from_row(row), rows, p.head, padded, w.b.head, T(p.scale), w.q);
  SeenKeys seen;
  if constexpr (kind.bounded) seen = p.seen_keys(p.told(args, in), row, rows);
  queries_block<T, kind>(p, w, {p, seen, row, rows});
  T* const l = args.output<T>(1);
  for (i64 r = 0; r < rows; ++r) {
    const T factor = w.sum[r] > 0 ? 1 / w.sum[r] : T(0);
    if (args.out[0])
      unpack_rows(w.out + r * w.b.value, w.b.value, 1, p.value, factor, p.result<S>(args, in, O).from_row(row + r));
    if (l) l[in[L] + (row + r) * p.row[L]] = w.sum[r] > 0 ? w.top[r] + vm::log(w.sum[r]) : T(0);
  }
}

template <class S, AttentionKind kind>
void blocked(const Plan& p, const AttentionBlocks& blocks, const Args& args) {
  using T = Wide<S>;
  Work<T> w(blocks, reinterpret_cast<T*>(args.scratch));
  Pauses pauses(args);
  run_nest(p.heads, [&](Steps at) {
    pack_turned(p.operand<S>(args, at, K), p.keys, p.head, blocks.keys, p.head, w.keys);
    pack_panels(p.operand<S>(args, at, V), p.keys, p.value, blocks.keys, w.values);
    run_nest(
        p.groups,
        [&](Steps in) {
          if (p.sinks) w.sink = args.input<S>(*p.sinks)[in[X]];
          for (i64 row = 0; row < p.queries; row += blocks.rows) {
            block_of_head<S, kind>(p, w, args, in, row);
            // A score takes as long as four elements of a pass.
            pauses.after(4 * std::min(blocks.rows, p.queries - row) * p.keys);
          }
        },
        0, at);
  });
  p.padding[0].clear(args.output<S>(0));
  p.padding[1].clear(args.output<T>(1));
}

template <class S>
void reference(const Plan& p, const Args& args) {
  using T = Wide<S>;
  std::vector<double> scores(static_cast<std::size_t>(p.keys));
  const auto get = [&](std::size_t i, const Steps& at, i64 row, i64 d) {
    return double(args.input<S>(int(i))[at[i] + row * p.row[i] + d * p.column[i]]);
  };
  const auto one_query = [&](const Steps& in, i64 i) {
    const Plan::Told told = p.told(args, in);
    const i64 count = p.seen_to(told, i), low = std::min(count, p.seen_from(told, i));
    double top = -std::numeric_limits<double>::infinity(), sum = 0;
    if (p.sinks) top = args.input<S>(*p.sinks)[in[X]], sum = 1;
    for (i64 j = low; j < count; ++j) {
      double dot = 0;
      for (i64 d = 0; d < p.head; ++d) dot += get(Q, in, i, d) * get(K, in, j, d);
      scores[j] = p.softcap > 0 ? p.softcap * std::tanh(dot * p.scale / p.softcap) : dot * p.scale;
      if (scores[j] > top) sum *= std::exp(top - scores[j]), top = scores[j];
    }
    for (i64 j = low; j < count; ++j) sum += scores[j] = std::exp(scores[j] - top);
    if (sum == 0) sum = 1, top = 0;
    for (i64 d = 0; d < p.value && args.out[0]; ++d) {
      double out = 0;
      for (i64 j = low; j < count; ++j) out += scores[j] / sum * get(V, in, j, d);
      args.output<S>(0)[in[O] + i * p.row[O] + d * p.column[O]] = S(out);
    }
    if (args.out[1]) args.output<T>(1)[in[L] + i * p.row[L]] = T(top + std::log(sum));
  };
  run_nest(p.heads, [&](Steps at) {
    run_nest(
        p.groups,
        [&](Steps in) {
          for (i64 i = 0; i < p.queries; ++i) one_query(in, i);
        },
        0, at);
  });
  p.padding[0].clear(args.output<S>(0));
  p.padding[1].clear(args.output<T>(1));
}

Runner prepare_blocked(const Call& call) {
  return attention_runner(call, plan_of(call),
                          []<class S, AttentionKind kind>(const auto&... x) { blocked<S, kind>(x...); });
}
Runner prepare_reference(const Call& call) {
  return with_stored(call.in[0].dtype, [&]<class S>() -> Runner {
    return [p = plan_of(call)](const Args& args) { reference<S>(p, args); };
  });
}

constexpr Kernel kernels[] = {{.name = "blocked", .prepare = &prepare_blocked},
                              {.name = "reference", .prepare = &prepare_reference}};

}  // namespace

std::span<const Kernel> attention_kernels() { return kernels; }

}  // namespace stretto
