// Per head: new rows into the caches, then every query against the rows it sees. For decoding there is one query, and
// the time is that of reading the caches once.
#include "stretto/ops/cached_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stretto/kernels/cpu/lanes.h"
#include "stretto/kernels/cpu/padding.h"
#include "stretto/kernels/cpu/with_float.h"

namespace stretto {
namespace {

enum : std::size_t { Q, K, V, KC, VC, O };  // arrays of the nests

struct Plan {
  Nest heads, groups;
  i64 queries = 0, room = 0, head = 0;
  i64 q_row, q, k_row, k, v_row, v, kc_row, kc, vc_row, vc, o_row, o, at;  // strides
  double scale = 1;
  Padding padding;
};

Plan plan_of(const Call& call) {
  const CachedAttentionAttrs& a = call.attrs<CachedAttentionAttrs>();
  const View &q = call.in[0], &k = call.in[1], &v = call.in[2], &kc = call.in[3], &vc = call.in[4], &o = call.out[0];
  const DimSet inner = {a.query, a.cache, a.head};
  return {.heads = valid_nest(without(k.dims, inner), {&q, &k, &v, &kc, &vc, &o}),
          .groups = valid_nest(without(without(q.dims, k.dims), inner), {&q, &k, &v, &kc, &vc, &o}),
          .queries = q.valid(a.query),
          .room = kc.valid(a.cache),
          .head = q.valid(a.head),
          .q_row = q.stride(a.query),
          .q = q.stride(a.head),
          .k_row = k.stride(a.query),
          .k = k.stride(a.head),
          .v_row = v.stride(a.query),
          .v = v.stride(a.head),
          .kc_row = kc.stride(a.cache),
          .kc = kc.stride(a.head),
          .vc_row = vc.stride(a.cache),
          .vc = vc.stride(a.head),
          .o_row = o.stride(a.query),
          .o = o.stride(a.head),
          .at = call.in[5].stride(a.query),
          .scale = a.scale,
          .padding = Padding(o)};
}

i64 position_of(const Plan& p, const Args& args, i64 query) {
  const i64 at = args.input<std::int32_t>(5)[query * p.at];
  if (at < 0 || at >= p.room)
    throw Error("cached_attention", "position {} is outside of a cache of {}", at, p.room)
        .hint("make room for as many tokens as are generated");
  return at;
}

template <class T>
void append(const Plan& p, const Args& args, const Steps& at) {
  T* const keys = reinterpret_cast<T*>(args.in[3]) + at[KC];
  T* const values = reinterpret_cast<T*>(args.in[4]) + at[VC];
  for (i64 i = 0; i < p.queries; ++i) {
    const i64 row = position_of(p, args, i);
    for (i64 d = 0; d < p.head; ++d) {
      keys[row * p.kc_row + d * p.kc] = args.input<T>(1)[at[K] + i * p.k_row + d * p.k];
      values[row * p.vc_row + d * p.vc] = args.input<T>(2)[at[V] + i * p.v_row + d * p.v];
    }
  }
}

// f(offset of the head in the caches, offset in queries, offset in the result, rows seen) for every query.
template <class T, class F>
void for_each_query(const Plan& p, const Args& args, const F& f) {
  run_nest(p.heads, [&](Steps at) {
    append<T>(p, args, at);
    run_nest(
        p.groups,
        [&](Steps in) {
          for (i64 i = 0; i < p.queries; ++i)
            f(args.input<T>(3) + at[KC], args.input<T>(4) + at[VC], args.input<T>(0) + in[Q] + i * p.q_row,
              args.output<T>() + in[O] + i * p.o_row, position_of(p, args, i) + 1);
        },
        0, at);
  });
  p.padding.clear(args.output<T>());
}

bool accepts_rows(const Call& call) {
  const Plan p = plan_of(call);
  return p.kc == 1 && p.vc == 1;
}

Runner prepare_rows(const Call& call) {
  return with_float(call.in[0].dtype, [&]<class T>() -> Runner {
    return [p = plan_of(call)](const Args& args) {
      T *const scores = reinterpret_cast<T*>(args.scratch), *const query = scores + p.room, *const sum = query + p.head;
      for_each_query<T>(p, args, [&](const T* keys, const T* values, const T* q, T* out, i64 rows) {
        for (i64 d = 0; d < p.head; ++d) query[d] = q[d * p.q] * T(p.scale), sum[d] = 0;
        for (i64 j = 0; j < rows; ++j)
          scores[j] = lane_sum<T>(
              p.head, [](auto x, auto y) { return x * y; }, query, keys + j * p.kc_row);
        const T top = lane_max(rows, scores);
        T total = 0;
        for (i64 j = 0; j < rows; ++j) {
          const T weight = std::exp(scores[j] - top), *row = values + j * p.vc_row;
          total += weight;
#pragma GCC ivdep
          for (i64 d = 0; d < p.head; ++d) sum[d] += weight * row[d];
        }
        for (i64 d = 0; d < p.head; ++d) out[d * p.o] = sum[d] / total;
      });
    };
  });
}

Runner prepare_reference(const Call& call) {
  return with_float(call.in[0].dtype, [&]<class T>() -> Runner {
    return [p = plan_of(call)](const Args& args) {
      std::vector<double> weights(static_cast<std::size_t>(p.room));
      for_each_query<T>(p, args, [&](const T* keys, const T* values, const T* q, T* out, i64 rows) {
        double top = -std::numeric_limits<double>::infinity(), total = 0;
        for (i64 j = 0; j < rows; ++j) {
          double dot = 0;
          for (i64 d = 0; d < p.head; ++d) dot += double(q[d * p.q]) * double(keys[j * p.kc_row + d * p.kc]);
          weights[std::size_t(j)] = dot * p.scale;
          top = std::max(top, dot * p.scale);
        }
        for (i64 j = 0; j < rows; ++j) total += weights[std::size_t(j)] = std::exp(weights[std::size_t(j)] - top);
        for (i64 d = 0; d < p.head; ++d) {
          double sum = 0;
          for (i64 j = 0; j < rows; ++j) sum += weights[std::size_t(j)] * double(values[j * p.vc_row + d * p.vc]);
          out[d * p.o] = T(sum / total);
        }
      });
    };
  });
}

constexpr Kernel kernels[] = {{.name = "rows", .accepts = &accepts_rows, .prepare = &prepare_rows},
                              {.name = "reference", .prepare = &prepare_reference}};

}  // namespace

std::span<const Kernel> cached_attention_kernels() { return kernels; }

}  // namespace stretto
