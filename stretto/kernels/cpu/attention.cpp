// Per head: a block of queries against all keys it sees, block by block, with a running maximum and sum.
#include "stretto/ops/attention.h"

#include "stretto/kernels/cpu/attention_plan.h"
#include "stretto/kernels/cpu/exp_row.h"
#include "stretto/kernels/cpu/pauses.h"
#include "stretto/kernels/cpu/with_float.h"

namespace stretto {
namespace {

enum : std::size_t { Q, K, V, O, L };  // arrays of the nests

struct Strides {
  i64 q_row, q, k_row, k, v_row, v, o_row, o, l_row;
};
struct Plan : AttentionPlan {
  Strides s;
};

Plan plan_of(const Call& call) {
  const View &q = call.in[0], &k = call.in[1], &v = call.in[2], &o = call.out[0], &l = call.out[1];
  const AttentionAttrs& a = call.attrs<AttentionAttrs>();
  return {attention_plan<AttentionAttrs>(call, {&q, &k, &v, &o, &l}),
          {q.stride(a.query), q.stride(a.head), k.stride(a.key), k.stride(a.head), v.stride(a.key), v.stride(a.head),
           o.stride(a.query), o.stride(a.head), l.stride(a.query)}};
}

// One head's packed keys and values, and the workspace for a block of queries.
template <class T>
struct Work {
  AttentionBlocks b;
  T *keys, *values, *scores, *q, *out, *top, *sum;
  Work(const AttentionBlocks& blocks, T* at) : b(blocks) {
    const auto take = [&](i64 n) { return std::exchange(at, at + n); };
    keys = take(b.head * b.keys);
    values = take(b.head * b.keys);
    scores = take(b.rows * b.pitch);
    q = take(b.rows * b.head);
    out = take(b.rows * b.head);
    top = take(b.rows);
    sum = take(b.rows);
  }
};

// Rows of scores become exp(score - maximum so far); what was summed before is scaled to the new maximum.
template <class T>
void soften(const Plan& p, const Work<T>& w, i64 first_row, i64 rows, i64 first_key) {
  constexpr T none = -std::numeric_limits<T>::infinity();
  for (i64 r = 0; r < rows; ++r) {
    T* row = w.scores + r * w.b.pitch;
    const i64 count = std::clamp<i64>(p.visible(first_row + r) - first_key, 0, w.b.columns);
    const i64 end = mask_row(row, count);
    clear_beyond(row, end);
    if (first_key == 0) w.top[r] = none, w.sum[r] = 0;
    if (count == 0) continue;
    const T before = w.top[r], top = std::max(before, lane_max(end, row));
    T sum = exp_row(row, row, end, top);
    if (before != none) {
      const T factor = vm::exp(before - top);
      sum += w.sum[r] * factor;
      for (i64 i = 0; i < w.b.head && factor != 1; ++i) w.out[r * w.b.head + i] *= factor;
    }
    w.top[r] = top;
    w.sum[r] = sum;
  }
}

template <class T>
void queries_block(const Plan& p, const Work<T>& w, i64 first_row, i64 rows) {
  constexpr i64 width = panel_width<T>;
  const AttentionBlocks& b = w.b;
  const auto seen_by_tile = [&](i64 r) { return p.visible(first_row + std::min(r + tile_rows, rows) - 1); };
  const i64 seen = p.visible(first_row + rows - 1);
  for (i64 key = 0; key == 0 || key < seen; key += b.columns) {
    const i64 end = std::min(seen - key, b.columns);
    for (i64 c = 0; c < end; c += width)
      for (i64 r = 0; r < rows; r += tile_rows)
        if (key + c < seen_by_tile(r))
          multiply_tile<T, false>(p.head, w.q + r * b.head, b.head, w.keys + (key + c) * p.head,
                                  w.scores + r * b.pitch + c, b.pitch, false);
    soften(p, w, first_row, rows, key);
    for (i64 h = 0; h < b.head; h += width)
      for (i64 r = 0; r < rows; r += tile_rows) {
        const i64 k = std::clamp<i64>(seen_by_tile(r) - key, 0, b.columns);
        if (k > 0 || key == 0)
          multiply_tile<T, false>(k, w.scores + r * b.pitch, b.pitch, w.values + h * b.keys + key * width,
                                  w.out + r * b.head + h, b.head, key > 0);
      }
  }
}

template <class T>
void blocked(const Plan& p, const AttentionBlocks& blocks, const Args& args) {
  const Work<T> w(blocks, reinterpret_cast<T*>(args.scratch));
  const Strides& s = p.s;
  T *const o = args.output<T>(0), *const l = args.output<T>(1);
  Pauses pauses(args);
  run_nest(p.heads, [&](Steps at) {
    pack_turned<T>({args.input<T>(1) + at[K], s.k_row, s.k}, p.keys, p.head, blocks.keys, p.head, w.keys);
    pack_panels<T>({args.input<T>(2) + at[V], s.v_row, s.v}, p.keys, p.head, blocks.keys, w.values);
    run_nest(
        p.groups,
        [&](Steps in) {
          for (i64 row = 0; row < p.queries; row += blocks.rows) {
            const i64 rows = std::min(blocks.rows, p.queries - row);
            const i64 padded = (rows + tile_rows - 1) / tile_rows * tile_rows;
            pack_rows<T>({args.input<T>(0) + in[Q] + row * s.q_row, s.q_row, s.q}, rows, p.head, padded, blocks.head,
                         T(p.scale), w.q);
            queries_block(p, w, row, rows);
            pauses.after(4 * rows * p.keys);  // a score takes as long as four elements of a pass
            for (i64 r = 0; r < rows; ++r) {
              const T factor = w.sum[r] > 0 ? 1 / w.sum[r] : T(0);
              if (o)
                unpack_rows<T>(w.out + r * blocks.head, blocks.head, 1, p.head, factor,
                               {o + in[O] + (row + r) * s.o_row, s.o_row, s.o});
              if (l) l[in[L] + (row + r) * s.l_row] = w.top[r] + vm::log(w.sum[r]);
            }
          }
        },
        0, at);
  });
  p.padding[0].clear(o);
  p.padding[1].clear(l);
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
            const i64 count = p.visible(i);
            double top = -std::numeric_limits<double>::infinity(), sum = 0;
            for (i64 j = 0; j < count; ++j) {
              double dot = 0;
              for (i64 d = 0; d < p.head; ++d)
                dot += double(q[d * s.q]) * double(args.input<T>(1)[in[K] + j * s.k_row + d * s.k]);
              scores[std::size_t(j)] = dot * p.scale;
              top = std::max(top, dot * p.scale);
            }
            for (i64 j = 0; j < count; ++j) sum += scores[std::size_t(j)] = std::exp(scores[std::size_t(j)] - top);
            for (i64 d = 0; d < p.head && args.out[0]; ++d) {
              double out = 0;
              for (i64 j = 0; j < count; ++j)
                out += scores[std::size_t(j)] / sum * double(args.input<T>(2)[in[V] + j * s.v_row + d * s.v]);
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
    const AttentionAttrs& a = call.attrs<AttentionAttrs>();
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

std::span<const Kernel> attention_kernels() { return kernels; }

}  // namespace stretto
