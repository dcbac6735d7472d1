// Per head: a block of queries against all keys it sees, block by block, with a running maximum and sum.
#include "stretto/ops/attention.h"

#include "stretto/kernels/cpu/attention_plan.h"
#include "stretto/kernels/cpu/exp_row.h"
#include "stretto/kernels/cpu/pauses.h"
#include "stretto/kernels/cpu/with_float.h"

namespace stretto {
namespace {

enum : std::size_t { Q, K, V, O, L, S, U, X };  // arrays of the nests; S: since, U: until, X: sinks

struct Strides {
  i64 q_row, q, k_row, k, v_row, v, o_row, o, l_row;
};
struct Plan : AttentionPlan {
  Strides s;
  std::optional<int> sinks;  // the operand, if it is there

  Told told(const Args& args, const Steps& at) const { return AttentionPlan::told(args, at[S], at[U]); }
};

Plan plan_of(const Call& call) {
  const View &q = call.in[0], &k = call.in[1], &v = call.in[2], &o = call.out[0], &l = call.out[1];
  const AttentionAttrs& a = call.attrs<AttentionAttrs>();
  const auto bound = [&](std::optional<int> at) { return at ? &call.in[std::size_t(*at)] : &l; };
  const View& sinks = a.sinks ? call.in.back() : l;
  return {attention_plan(call, {&q, &k, &v, &o, &l, bound(a.since_at(3)), bound(a.until_at(3)), &sinks}, 3),
          {q.stride(a.query), q.stride(a.head), k.stride(a.key), k.stride(a.head), v.stride(a.key), v.stride(a.value),
           o.stride(a.query), o.stride(a.value), l.stride(a.query)},
          a.sinks ? std::optional(3 + a.since + a.until) : std::nullopt};
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
template <class T, AttentionKind kind>
void block_of_head(const Plan& p, const Work<T>& w, const Args& args, const Steps& in, i64 row) {
  const Strides& s = p.s;
  const i64 rows = std::min(w.b.rows, p.queries - row);
  const i64 padded = (rows + tile_rows - 1) / tile_rows * tile_rows;
  pack_rows<T>({args.input<T>(0) + in[Q] + row * s.q_row, s.q_row, s.q}, rows, p.head, padded, w.b.head, T(p.scale),
               w.q);
  SeenKeys seen;
  if constexpr (kind.bounded) seen = p.seen_keys(p.told(args, in), row, rows);
  queries_block<T, kind>(p, w, {p, seen, row, rows});
  T *const o = args.output<T>(0), *const l = args.output<T>(1);
  for (i64 r = 0; r < rows; ++r) {
    const T factor = w.sum[r] > 0 ? 1 / w.sum[r] : T(0);
    if (o)
      unpack_rows<T>(w.out + r * w.b.value, w.b.value, 1, p.value, factor,
                     {o + in[O] + (row + r) * s.o_row, s.o_row, s.o});
    if (l) l[in[L] + (row + r) * s.l_row] = w.sum[r] > 0 ? w.top[r] + vm::log(w.sum[r]) : T(0);
  }
}

template <class T, AttentionKind kind>
void blocked(const Plan& p, const AttentionBlocks& blocks, const Args& args) {
  Work<T> w(blocks, reinterpret_cast<T*>(args.scratch));
  const Strides& s = p.s;
  Pauses pauses(args);
  run_nest(p.heads, [&](Steps at) {
    pack_turned<T>({args.input<T>(1) + at[K], s.k_row, s.k}, p.keys, p.head, blocks.keys, p.head, w.keys);
    pack_panels<T>({args.input<T>(2) + at[V], s.v_row, s.v}, p.keys, p.value, blocks.keys, w.values);
    run_nest(
        p.groups,
        [&](Steps in) {
          if (p.sinks) w.sink = args.input<T>(*p.sinks)[in[X]];
          for (i64 row = 0; row < p.queries; row += blocks.rows) {
            block_of_head<T, kind>(p, w, args, in, row);
            // A score takes as long as four elements of a pass.
            pauses.after(4 * std::min(blocks.rows, p.queries - row) * p.keys);
          }
        },
        0, at);
  });
  p.padding[0].clear(args.output<T>(0));
  p.padding[1].clear(args.output<T>(1));
}

template <class T>
void reference(const Plan& p, const Args& args) {
  const Strides& s = p.s;
  std::vector<double> scores(static_cast<std::size_t>(p.keys));
  run_nest(p.heads, [&](Steps at) {
    run_nest(
        p.groups,
        [&](Steps in) {
          for (i64 i = 0; i < p.queries; ++i) {
            const T* q = args.input<T>(0) + in[Q] + i * s.q_row;
            const Plan::Told told = p.told(args, in);
            const i64 count = p.seen_to(told, i), low = std::min(count, p.seen_from(told, i));
            double top = -std::numeric_limits<double>::infinity(), sum = 0;
            if (p.sinks) top = args.input<T>(*p.sinks)[in[X]], sum = 1;
            for (i64 j = low; j < count; ++j) {
              double dot = 0;
              for (i64 d = 0; d < p.head; ++d)
                dot += double(q[d * s.q]) * double(args.input<T>(1)[in[K] + j * s.k_row + d * s.k]);
              scores[j] = p.softcap > 0 ? p.softcap * std::tanh(dot * p.scale / p.softcap) : dot * p.scale;
              if (scores[j] > top) sum *= std::exp(top - scores[j]), top = scores[j];
            }
            for (i64 j = low; j < count; ++j) sum += scores[j] = std::exp(scores[j] - top);
            if (sum == 0) sum = 1, top = 0;
            for (i64 d = 0; d < p.value && args.out[0]; ++d) {
              double out = 0;
              for (i64 j = low; j < count; ++j)
                out += scores[j] / sum * double(args.input<T>(2)[in[V] + j * s.v_row + d * s.v]);
              args.output<T>(0)[in[O] + i * s.o_row + d * s.o] = T(out);
            }
            if (args.out[1]) args.output<T>(1)[in[L] + i * s.l_row] = T(top + std::log(sum));
          }
        },
        0, at);
  });
  p.padding[0].clear(args.output<T>(0));
  p.padding[1].clear(args.output<T>(1));
}

Runner prepare_blocked(const Call& call) {
  return with_float(call.in[0].dtype, [&]<class T>() -> Runner {
    const Plan p = plan_of(call);
    return with_kind(p, [&]<AttentionKind kind>() -> Runner {
      return [p, blocks = attention_blocks(call)](const Args& args) { blocked<T, kind>(p, blocks, args); };
    });
  });
}
Runner prepare_reference(const Call& call) {
  return with_float(call.in[0].dtype, [&]<class T>() -> Runner {
    return [p = plan_of(call)](const Args& args) { reference<T>(p, args); };
  });
}

constexpr Kernel kernels[] = {{.name = "blocked", .prepare = &prepare_blocked},
                              {.name = "reference", .prepare = &prepare_reference}};

}  // namespace

std::span<const Kernel> attention_kernels() { return kernels; }

}  // namespace stretto
