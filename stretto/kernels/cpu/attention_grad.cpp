// Per head: for a block of queries the probabilities are computed again from the scores and their logarithmic sum; the
// gradients of keys and values are added up in the workspace over all blocks and groups.
#include "stretto/ops/attention_grad.h"

#include "stretto/kernels/cpu/attention_plan.h"
#include "stretto/kernels/cpu/exp_row.h"
#include "stretto/kernels/cpu/pauses.h"

namespace stretto {
namespace {

enum : std::size_t { Q, K, V, O, L, G, DQ, DK, DV };  // arrays of the nests
using Plan = AttentionPlan;

Plan plan_of(const Call& call) {
  std::vector<const View*> views;
  for (std::size_t i = 0; i <= DV; ++i) views.push_back(i < DQ ? &call.in[i] : &call.out[i - DQ]);
  return attention_plan(call, std::move(views), DQ);
}

template <class T>
struct Work {
  AttentionBlocks b;
  T *keys_turned, *values_turned, *keys, *dk, *dv;                   // of one head
  T *prob, *dscores, *q, *g, *q_panels, *g_panels, *dq, *lse, *dot;  // of one block of queries; dq holds o, first
  Work(const AttentionBlocks& blocks, T* at) : b(blocks) {
    const auto take = [&](i64 n) { return std::exchange(at, at + n); };
    for (T** p : {&keys_turned, &keys, &dk}) *p = take(b.head * b.keys);
    for (T** p : {&values_turned, &dv}) *p = take(b.value * b.keys);
    for (T** p : {&prob, &dscores}) *p = take(b.rows * b.pitch);
    for (T** p : {&q, &q_panels}) *p = take(b.rows * b.head);
    for (T** p : {&g, &g_panels}) *p = take(b.rows * b.value);
    dq = take(b.rows * std::max(b.head, b.value));
    for (T** p : {&lse, &dot}) *p = take(b.rows);
  }
};
struct Wanted {
  bool dq, dk, dv;
};

// Scores get their soft cap; d, the probabilities' gradients without `dot`, its slope.
template <class T>
void cap_rows(T* prob, T* d, i64 n, T cap, T dot) {
#pragma GCC ivdep
  for (i64 i = 0; i < n; ++i) {
    const T x = vm::tanh(prob[i] / cap);
    prob[i] = cap * x;
    d[i] = (d[i] - dot) * (1 - x * x);
  }
}

// prob: from scores to probabilities; dscores: from the probabilities' gradients to the scores'.
template <class T, AttentionKind kind>
void soften(const Plan& p, const Work<T>& w, const Reach<kind>& reach, i64 key) {
  const auto within = [&](i64 k) { return std::clamp<i64>(k - key, 0, w.b.columns); };
  for (i64 r = 0; r < reach.rows; ++r) {
    T *prob = w.prob + r * w.b.pitch, *d = w.dscores + r * w.b.pitch;
    const i64 count = within(reach.of(r));
    const i64 low = kind.bounded ? std::min(within(reach.seen.from[r]), count) : 0;
    const i64 end = (count + panel_width<T> - 1) / panel_width<T> * panel_width<T>;
    const i64 base = !kind.bounded ? 0 : low == count ? end : low / panel_width<T> * panel_width<T>;
    const T lse = w.lse[r], dot = w.dot[r];
    if constexpr (kind.capped) cap_rows(prob + base, d + base, count - base, T(p.softcap), dot);
    mask_row(prob, count);
    if constexpr (kind.bounded) {
      std::fill_n(d, base, T(0));
      hide_before(prob, base, low);
    }
#pragma GCC ivdep
    for (i64 i = base; i < end; ++i) {
      const T x = decay(prob[i] - lse);
      prob[i] = x;
      d[i] = kind.capped ? (x > 0 ? x * d[i] : T(0)) : x * (d[i] - dot);
    }
    for (T* row : {prob, d})
      clear_beyond<T, kind>(row, end, kind.bounded ? within(reach.of_tile(r / tile_rows * tile_rows)) : 0);
  }
}

// A block of keys; `fresh`: dk and dv hold nothing yet.
struct KeysBlock {
  i64 key, keys;
  bool fresh;
};

// What the block adds to the gradients of its keys and values.
template <class T, AttentionKind kind>
void add_to_keys(const Work<T>& w, Wanted wanted, const Reach<kind>& reach, const KeysBlock& at) {
  const AttentionBlocks& b = w.b;
  const SeenKeys& seen = reach.seen;
  constexpr i64 width = panel_width<T>;
  i64 below = kind.bounded ? 0 : reach.rows;  // rows from here on see none of the tile's keys
  i64 skip = 0;                               // rows before have nothing to add
  const i64 begin = kind.bounded ? std::max<i64>(0, seen.least[0] - at.key) / tile_rows * tile_rows : 0;
  for (i64 c = begin; c < at.keys; c += tile_rows) {
    while (below < reach.rows && seen.least[below] < at.key + c + tile_rows) ++below;
    skip = reach.first_with(at.key + c, skip);
    if (kind.bounded && below <= skip) continue;
    const T *prob = w.prob + skip * b.pitch + c, *dscores = w.dscores + skip * b.pitch + c;
    if (wanted.dv)
      for (i64 h = 0; h < b.value; h += width)
        multiply_tile<T, true>(below - skip, prob, b.pitch, w.g_panels + h * b.rows + skip * width,
                               w.dv + (at.key + c) * b.value + h, b.value, !at.fresh);
    if (wanted.dk)
      for (i64 h = 0; h < b.head; h += width)
        multiply_tile<T, true>(below - skip, dscores, b.pitch, w.q_panels + h * b.rows + skip * width,
                               w.dk + (at.key + c) * b.head + h, b.head, !at.fresh);
  }
}

// `fresh`: dk and dv hold nothing yet.
template <class T, AttentionKind kind>
void queries_block(const Plan& p, const Work<T>& w, Wanted wanted, const Reach<kind>& reach, bool fresh) {
  constexpr i64 width = panel_width<T>;
  const AttentionBlocks& b = w.b;
  const SeenKeys& keys = reach.seen;
  const i64 seen = reach.of_block(), start = kind.bounded ? keys.least[0] / (3 * width) * (3 * width) : 0;
  for (i64 key = start; key == start || key < seen; key += b.columns) {
    const i64 end = std::min(seen - key, b.columns);
    for (i64 c = 0; c < end; c += width)
      for (i64 r = 0; r < reach.rows; r += tile_rows) {
        if (key + c >= reach.of_tile(r) || (kind.bounded && key + c + width <= keys.least[r])) continue;
        multiply_tile<T, false>(p.head, w.q + r * b.head, b.head, w.keys_turned + (key + c) * p.head,
                                w.prob + r * b.pitch + c, b.pitch, false);
        multiply_tile<T, false>(p.value, w.g + r * b.value, b.value, w.values_turned + (key + c) * p.value,
                                w.dscores + r * b.pitch + c, b.pitch, false);
      }
    soften<T, kind>(p, w, reach, key);
    if (wanted.dq)
      for (i64 h = 0; h < b.head; h += width)
        for (i64 r = 0; r < reach.rows; r += tile_rows) {
          const i64 k = std::clamp<i64>(reach.of_tile(r) - key, 0, b.columns);
          const i64 low = kind.bounded ? std::clamp<i64>(keys.least[r] - key, 0, k) : 0;
          if (k > low || key == start)
            multiply_tile<T, false>(k - low, w.dscores + r * b.pitch + low, b.pitch,
                                    w.keys + h * b.keys + (key + low) * width, w.dq + r * b.head + h, b.head,
                                    key > start);
        }
    add_to_keys<T, kind>(w, wanted, reach, {key, end, fresh});
  }
  if (fresh) {  // keys that nobody sees
    const i64 written = (seen + tile_rows - 1) / tile_rows * tile_rows;
    std::fill(w.dk + written * b.head, w.dk + b.keys * b.head, T(0));
    std::fill(w.dv + written * b.value, w.dv + b.keys * b.value, T(0));
  }
}

template <class S, AttentionKind kind, class T = Wide<S>>
void block_of_head(const Plan& p, const Work<T>& w, Wanted wanted, const Args& args, const Steps& in, i64 row,
                   bool fresh) {
  const AttentionBlocks& b = w.b;
  const auto matrix = [&](std::size_t i) { return p.operand<S>(args, in, i).from_row(row); };
  const i64 rows = std::min(b.rows, p.queries - row);
  const i64 padded = (rows + tile_rows - 1) / tile_rows * tile_rows;
  pack_rows(matrix(Q), rows, p.head, padded, b.head, T(p.scale), w.q);
  pack_rows(matrix(G), rows, p.value, padded, b.value, T(1), w.g);
  pack_panels<T>({w.q, b.head, 1}, rows, b.head, b.rows, w.q_panels);
  pack_panels<T>({w.g, b.value, 1}, rows, b.value, b.rows, w.g_panels);
  pack_rows(matrix(O), rows, p.value, padded, b.value, T(1), w.dq);
  for (i64 r = 0; r < rows; ++r) {
    w.lse[r] = args.input<T>(L)[in[L] + (row + r) * p.row[L]];
    w.dot[r] = lane_sum<T>(
        b.value, [](auto x, auto y) { return x * y; }, w.g + r * b.value, w.dq + r * b.value);
  }
  SeenKeys seen;
  if constexpr (kind.bounded) seen = p.seen_keys(p.told(args, in), row, rows);
  queries_block<T, kind>(p, w, wanted, {p, seen, row, rows}, fresh);
  if (wanted.dq) unpack_rows(w.dq, b.head, rows, p.head, T(p.scale), p.result<S>(args, in, DQ).from_row(row));
}

template <class S, AttentionKind kind>
void blocked(const Plan& p, const AttentionBlocks& b, const Args& args) {
  using T = Wide<S>;
  const Work<T> w(b, reinterpret_cast<T*>(args.scratch));
  const Wanted wanted{args.out[0] != nullptr, args.out[1] != nullptr, args.out[2] != nullptr};
  Pauses pauses(args);
  run_nest(p.heads, [&](Steps at) {
    pack_panels(p.operand<S>(args, at, K), p.keys, p.head, b.keys, w.keys);
    for (i64 h = 0; h < p.head; h += panel_width<T>)
      pack_turned<T>({w.keys + h * b.keys, panel_width<T>, 1}, b.keys, std::min(panel_width<T>, p.head - h), b.keys,
                     p.head, w.keys_turned + h * panel_width<T>);
    pack_turned(p.operand<S>(args, at, V), p.keys, p.value, b.keys, p.value, w.values_turned);
    bool fresh = !kind.bounded;
    if (kind.bounded) {  // which block of queries sees a key first depends on the data
      std::fill_n(w.dk, b.keys * b.head, T(0));
      std::fill_n(w.dv, b.keys * b.value, T(0));
    }
    run_nest(
        p.groups,
        [&](Steps in) {
          // The last queries see the most keys: they write the gradients that the others add to.
          for (i64 row = (p.queries - 1) / b.rows * b.rows; row >= 0; row -= b.rows, fresh = false) {
            block_of_head<S, kind>(p, w, wanted, args, in, row, fresh);
            // A score's gradients take as long as ten elements of a pass.
            pauses.after(10 * std::min(b.rows, p.queries - row) * p.keys);
          }
        },
        0, at);
    if (wanted.dk) unpack_rows(w.dk, b.head, p.keys, p.head, T(1), p.result<S>(args, at, DK));
    if (wanted.dv) unpack_rows(w.dv, b.value, p.keys, p.value, T(1), p.result<S>(args, at, DV));
  });
  for (int i = 0; i < 3; ++i) p.padding[i].clear(args.output<S>(i));
}

template <class S>
void reference(const Plan& p, const Args& args) {
  std::vector<double> prob(p.keys), dscores(p.keys), dk(p.keys * p.head), dv(p.keys * p.value);
  const auto get = [&](std::size_t i, const Steps& at, i64 row, i64 d) {
    return double(args.input<S>(int(i))[at[i] + row * p.row[i] + d * p.column[i]]);
  };
  const auto put = [&](std::size_t i, const Steps& at, i64 row, i64 d, double value) {
    if (args.out[i - DQ]) args.output<S>(int(i - DQ))[at[i] + row * p.row[i] + d * p.column[i]] = S(value);
  };
  const auto one_query = [&](const Steps& in, i64 i) {
    const Plan::Told told = p.told(args, in);
    const i64 count = p.seen_to(told, i), low = std::min(count, p.seen_from(told, i));
    double dot = 0;
    for (i64 d = 0; d < p.value; ++d) dot += get(O, in, i, d) * get(G, in, i, d);
    for (i64 j = low; j < count; ++j) {
      double score = 0, dprob = 0, slope = 1;
      for (i64 d = 0; d < p.head; ++d) score += p.scale * get(Q, in, i, d) * get(K, in, j, d);
      for (i64 d = 0; d < p.value; ++d) dprob += get(G, in, i, d) * get(V, in, j, d);
      if (p.softcap > 0) {
        const double x = std::tanh(score / p.softcap);
        score = p.softcap * x, slope = 1 - x * x;
      }
      prob[j] = std::exp(score - double(args.input<Wide<S>>(L)[in[L] + i * p.row[L]]));
      dscores[j] = prob[j] * (dprob - dot) * slope * p.scale;
    }
    for (i64 d = 0; d < p.head; ++d) {
      double dq = 0;
      for (i64 j = low; j < count; ++j) {
        dq += dscores[j] * get(K, in, j, d);
        dk[j * p.head + d] += dscores[j] * get(Q, in, i, d);
      }
      put(DQ, in, i, d, dq);
    }
    for (i64 d = 0; d < p.value; ++d)
      for (i64 j = low; j < count; ++j) dv[j * p.value + d] += prob[j] * get(G, in, i, d);
  };
  run_nest(p.heads, [&](Steps at) {
    std::fill(dk.begin(), dk.end(), 0.0);
    std::fill(dv.begin(), dv.end(), 0.0);
    run_nest(
        p.groups,
        [&](Steps in) {
          for (i64 i = 0; i < p.queries; ++i) one_query(in, i);
        },
        0, at);
    for (i64 j = 0; j < p.keys; ++j) {
      for (i64 d = 0; d < p.head; ++d) put(DK, at, j, d, dk[j * p.head + d]);
      for (i64 d = 0; d < p.value; ++d) put(DV, at, j, d, dv[j * p.value + d]);
    }
  });
  for (int i = 0; i < 3; ++i) p.padding[i].clear(args.output<S>(i));
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

std::span<const Kernel> attention_grad_kernels() { return kernels; }

}  // namespace stretto
