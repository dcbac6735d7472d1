// Per head: for a block of queries the probabilities are computed again from the scores and their logarithmic sum; the
// gradients of keys and values are added up in the workspace over all blocks and groups.
#include "stretto/ops/attention_grad.h"

#include "stretto/kernels/cpu/attention_plan.h"
#include "stretto/kernels/cpu/exp_row.h"
#include "stretto/kernels/cpu/pauses.h"
#include "stretto/kernels/cpu/with_float.h"

namespace stretto {
namespace {

enum : std::size_t { Q, K, V, O, L, G, DQ, DK, DV };  // arrays of the nests

struct Plan : AttentionPlan {
  i64 row[9], column[9];  // strides along queries or keys, and along the head
};

Plan plan_of(const Call& call) {
  const View* views[9];
  for (std::size_t i = 0; i < 9; ++i) views[i] = i < 6 ? &call.in[i] : &call.out[i - 6];
  const AttentionGradAttrs& a = call.attrs<AttentionGradAttrs>();
  Plan p{attention_plan<AttentionGradAttrs>(
      call, {views[Q], views[K], views[V], views[O], views[L], views[G], views[DQ], views[DK], views[DV]})};
  for (std::size_t i = 0; i < 9; ++i) {
    p.row[i] = contains(views[i]->dims, a.key) ? views[i]->stride(a.key) : views[i]->stride(a.query);
    p.column[i] = views[i]->stride(a.head);
  }
  return p;
}

template <class T>
struct Work {
  AttentionBlocks b;
  T *keys_turned, *values_turned, *keys, *dk, *dv;                   // of one head
  T *prob, *dscores, *q, *g, *q_panels, *g_panels, *dq, *lse, *dot;  // of one block of queries
  Work(const AttentionBlocks& blocks, T* at) : b(blocks) {
    const auto take = [&](i64 n) { return std::exchange(at, at + n); };
    for (T** p : {&keys_turned, &values_turned, &keys, &dk, &dv}) *p = take(b.head * b.keys);
    for (T** p : {&prob, &dscores}) *p = take(b.rows * b.pitch);
    for (T** p : {&q, &g, &q_panels, &g_panels, &dq}) *p = take(b.rows * b.head);
    for (T** p : {&lse, &dot}) *p = take(b.rows);
  }
};
struct Wanted {
  bool dq, dk, dv;
};

// prob: from scores to probabilities; dscores: from the probabilities' gradients to the scores'.
template <class T>
void soften(const Plan& p, const Work<T>& w, i64 first_row, i64 rows, i64 first_key) {
  for (i64 r = 0; r < rows; ++r) {
    T *prob = w.prob + r * w.b.pitch, *d = w.dscores + r * w.b.pitch;
    const i64 end = mask_row(prob, std::clamp<i64>(p.visible(first_row + r) - first_key, 0, w.b.columns));
    const T lse = w.lse[r], dot = w.dot[r];
#pragma GCC ivdep
    for (i64 i = 0; i < end; ++i) {
      const T x = decay(prob[i] - lse);
      prob[i] = x;
      d[i] = x * (d[i] - dot);
    }
    clear_beyond(prob, end);
    clear_beyond(d, end);
  }
}

// `fresh`: dk and dv hold nothing yet.
template <class T>
void queries_block(const Plan& p, const Work<T>& w, Wanted wanted, i64 first_row, i64 rows, bool fresh) {
  constexpr i64 width = panel_width<T>;
  const AttentionBlocks& b = w.b;
  const auto seen_by_tile = [&](i64 r) { return p.visible(first_row + std::min(r + tile_rows, rows) - 1); };
  const i64 seen = p.visible(first_row + rows - 1);
  for (i64 key = 0; key == 0 || key < seen; key += b.columns) {
    const i64 end = std::min(seen - key, b.columns);
    for (i64 c = 0; c < end; c += width)
      for (i64 r = 0; r < rows; r += tile_rows) {
        if (key + c >= seen_by_tile(r)) continue;
        multiply_tile<T, false>(p.head, w.q + r * b.head, b.head, w.keys_turned + (key + c) * p.head,
                                w.prob + r * b.pitch + c, b.pitch, false);
        multiply_tile<T, false>(p.head, w.g + r * b.head, b.head, w.values_turned + (key + c) * p.head,
                                w.dscores + r * b.pitch + c, b.pitch, false);
      }
    soften(p, w, first_row, rows, key);
    if (wanted.dq)
      for (i64 h = 0; h < b.head; h += width)
        for (i64 r = 0; r < rows; r += tile_rows) {
          const i64 k = std::clamp<i64>(seen_by_tile(r) - key, 0, b.columns);
          if (k > 0 || key == 0)
            multiply_tile<T, false>(k, w.dscores + r * b.pitch, b.pitch, w.keys + h * b.keys + key * width,
                                    w.dq + r * b.head + h, b.head, key > 0);
        }
    for (i64 c = 0; c < end; c += tile_rows) {
      // Rows before the first that sees key + c have nothing to add.
      const i64 skip = p.causal ? std::clamp<i64>(key + c + 1 - (p.first + first_row), 0, rows) : 0;
      for (i64 h = 0; h < b.head; h += width) {
        const i64 to = (key + c) * b.head + h, from = h * b.rows + skip * width;
        if (wanted.dv)
          multiply_tile<T, true>(rows - skip, w.prob + skip * b.pitch + c, b.pitch, w.g_panels + from, w.dv + to,
                                 b.head, !fresh);
        if (wanted.dk)
          multiply_tile<T, true>(rows - skip, w.dscores + skip * b.pitch + c, b.pitch, w.q_panels + from, w.dk + to,
                                 b.head, !fresh);
      }
    }
  }
  if (fresh)  // keys that nobody sees
    for (T* d : {w.dk, w.dv}) {
      const i64 written = (seen + tile_rows - 1) / tile_rows * tile_rows;
      std::fill(d + written * b.head, d + b.keys * b.head, T(0));
    }
}

template <class T>
void blocked(const Plan& p, const AttentionBlocks& b, const Args& args) {
  const Work<T> w(b, reinterpret_cast<T*>(args.scratch));
  const Wanted wanted{args.out[0] != nullptr, args.out[1] != nullptr, args.out[2] != nullptr};
  Pauses pauses(args);
  run_nest(p.heads, [&](Steps at) {
    const auto matrix = [&](std::size_t i, const Steps& offset, i64 row) -> Strided<const T> {
      return {args.input<T>(int(i)) + offset[i] + row * p.row[i], p.row[i], p.column[i]};
    };
    pack_panels<T>(matrix(K, at, 0), p.keys, p.head, b.keys, w.keys);
    for (i64 h = 0; h < p.head; h += panel_width<T>)
      pack_turned<T>({w.keys + h * b.keys, panel_width<T>, 1}, b.keys, std::min(panel_width<T>, p.head - h), b.keys,
                     p.head, w.keys_turned + h * panel_width<T>);
    pack_turned<T>(matrix(V, at, 0), p.keys, p.head, b.keys, p.head, w.values_turned);
    bool fresh = true;
    run_nest(
        p.groups,
        [&](Steps in) {
          // The last queries see the most keys: they write the gradients that the others add to.
          for (i64 row = (p.queries - 1) / b.rows * b.rows; row >= 0; row -= b.rows, fresh = false) {
            const i64 rows = std::min(b.rows, p.queries - row);
            const i64 padded = (rows + tile_rows - 1) / tile_rows * tile_rows;
            pack_rows<T>(matrix(Q, in, row), rows, p.head, padded, b.head, T(p.scale), w.q);
            pack_rows<T>(matrix(G, in, row), rows, p.head, padded, b.head, T(1), w.g);
            pack_panels<T>({w.q, b.head, 1}, rows, b.head, b.rows, w.q_panels);
            pack_panels<T>({w.g, b.head, 1}, rows, b.head, b.rows, w.g_panels);
            pack_rows<T>(matrix(O, in, row), rows, p.head, padded, b.head, T(1), w.dq);
            for (i64 r = 0; r < rows; ++r) {
              w.lse[r] = args.input<T>(L)[in[L] + (row + r) * p.row[L]];
              w.dot[r] = lane_sum<T>(
                  b.head, [](auto x, auto y) { return x * y; }, w.g + r * b.head, w.dq + r * b.head);
            }
            queries_block(p, w, wanted, row, rows, fresh);
            pauses.after(10 * rows * p.keys);  // a score's gradients take as long as ten elements of a pass
            if (wanted.dq)
              unpack_rows<T>(w.dq, b.head, rows, p.head, T(p.scale),
                             {args.output<T>(0) + in[DQ] + row * p.row[DQ], p.row[DQ], p.column[DQ]});
          }
        },
        0, at);
    if (wanted.dk)
      unpack_rows<T>(w.dk, b.head, p.keys, p.head, T(1), {args.output<T>(1) + at[DK], p.row[DK], p.column[DK]});
    if (wanted.dv)
      unpack_rows<T>(w.dv, b.head, p.keys, p.head, T(1), {args.output<T>(2) + at[DV], p.row[DV], p.column[DV]});
  });
  for (std::size_t i = 0; i < 3; ++i) p.padding[i].clear(args.output<T>(int(i)));
}

template <class T>
void reference(const Plan& p, const Args& args) {
  const std::size_t keys = std::size_t(p.keys), head = std::size_t(p.head);
  std::vector<double> prob(keys), dscores(keys), dk(keys * head), dv(keys * head);
  const auto get = [&](std::size_t i, const Steps& at, i64 row, i64 d) {
    return double(args.input<T>(int(i))[at[i] + row * p.row[i] + d * p.column[i]]);
  };
  const auto put = [&](std::size_t i, const Steps& at, i64 row, i64 d, double value) {
    if (args.out[i - DQ]) args.output<T>(int(i - DQ))[at[i] + row * p.row[i] + d * p.column[i]] = T(value);
  };
  run_nest(p.heads, [&](Steps at) {
    std::fill(dk.begin(), dk.end(), 0.0);
    std::fill(dv.begin(), dv.end(), 0.0);
    run_nest(
        p.groups,
        [&](Steps in) {
          for (i64 i = 0; i < p.queries; ++i) {
            const i64 count = p.visible(i);
            double dot = 0;
            for (i64 d = 0; d < p.head; ++d) dot += get(O, in, i, d) * get(G, in, i, d);
            for (i64 j = 0; j < count; ++j) {
              double score = 0, dprob = 0;
              for (i64 d = 0; d < p.head; ++d) {
                score += get(Q, in, i, d) * get(K, in, j, d);
                dprob += get(G, in, i, d) * get(V, in, j, d);
              }
              prob[std::size_t(j)] = std::exp(score * p.scale - get(L, in, i, 0));
              dscores[std::size_t(j)] = prob[std::size_t(j)] * (dprob - dot) * p.scale;
            }
            for (i64 d = 0; d < p.head; ++d) {
              double dq = 0;
              for (i64 j = 0; j < count; ++j) {
                const std::size_t at_key = std::size_t(j) * head + std::size_t(d);
                dq += dscores[std::size_t(j)] * get(K, in, j, d);
                dk[at_key] += dscores[std::size_t(j)] * get(Q, in, i, d);
                dv[at_key] += prob[std::size_t(j)] * get(G, in, i, d);
              }
              put(DQ, in, i, d, dq);
            }
          }
        },
        0, at);
    for (i64 j = 0; j < p.keys; ++j)
      for (i64 d = 0; d < p.head; ++d) {
        put(DK, at, j, d, dk[std::size_t(j) * head + std::size_t(d)]);
        put(DV, at, j, d, dv[std::size_t(j) * head + std::size_t(d)]);
      }
  });
  for (std::size_t i = 0; i < 3; ++i) p.padding[i].clear(args.output<T>(int(i)));
}

Runner prepare_blocked(const Call& call) {
  return with_float(call.in[0].dtype, [&]<class T>() -> Runner {
    const AttentionGradAttrs& a = call.attrs<AttentionGradAttrs>();
    const AttentionBlocks blocks(call.in[0].dtype, call.in[0].size(a.query), call.in[1].size(a.key),
                                 call.in[0].size(a.head));
    return [p = plan_of(call), blocks](const Args& args) { blocked<T>(p, blocks, args); };
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

std::span<const Kernel> attention_grad_kernels() { return kernels; }

}  // namespace stretto
