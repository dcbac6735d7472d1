// Per head: new rows into the caches, then every query against the rows it sees. For decoding there is one query, and
// the time is that of reading the caches once.
#include "stretto/ops/cached_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stretto/kernels/cpu/lanes.h"
#include "stretto/kernels/cpu/padding.h"
#include "stretto/kernels/cpu/share.h"
#include "stretto/kernels/cpu/with_float.h"

namespace stretto {
namespace {

enum : std::size_t { Q, K, V, KC, VC, O, X };  // arrays of the nests; X: sinks

struct Plan {
  Nest heads, groups;
  i64 queries = 0, room = 0, head = 0, value = 0;
  i64 q_row, q, k_row, k, v_row, v, kc_row, kc, vc_row, vc, o_row, o, at;  // strides
  double scale = 1;
  i64 window = 0, chunk = 0;
  double softcap = 0;
  bool sinks = false;
  Padding padding;

  i64 first_seen(i64 position) const {
    const i64 near = window > 0 ? std::max<i64>(0, position + 1 - window) : 0;
    return chunk > 0 ? std::max(near, position / chunk * chunk) : near;
  }
  double capped(double score) const { return softcap > 0 ? softcap * std::tanh(score / softcap) : score; }
};

Plan plan_of(const Call& call) {
  const CachedAttentionAttrs& a = call.attrs<CachedAttentionAttrs>();
  const View &q = call.in[0], &k = call.in[1], &v = call.in[2], &kc = call.in[3], &vc = call.in[4], &o = call.out[0];
  const View& sinks = call.in.size() > 6 ? call.in[6] : o;
  const DimSet inner = {a.query, a.cache, a.head};
  return {.heads = valid_nest(without(k.dims, inner), {&q, &k, &v, &kc, &vc, &o, &sinks}),
          .groups = valid_nest(without(without(q.dims, k.dims), inner), {&q, &k, &v, &kc, &vc, &o, &sinks}),
          .queries = q.valid(a.query),
          .room = kc.valid(a.cache),
          .head = q.valid(a.head),
          .value = v.valid(a.value),
          .q_row = q.stride(a.query),
          .q = q.stride(a.head),
          .k_row = k.stride(a.query),
          .k = k.stride(a.head),
          .v_row = v.stride(a.query),
          .v = v.stride(a.value),
          .kc_row = kc.stride(a.cache),
          .kc = kc.stride(a.head),
          .vc_row = vc.stride(a.cache),
          .vc = vc.stride(a.value),
          .o_row = o.stride(a.query),
          .o = o.stride(a.value),
          .at = call.in[5].stride(a.query),
          .scale = a.scale,
          .window = a.window,
          .chunk = a.chunk,
          .softcap = a.softcap,
          .sinks = call.in.size() > 6,
          .padding = Padding(o)};
}

i64 position_of(const Plan& p, const Args& args, i64 query) {
  const i64 at = args.input<std::int32_t>(5)[query * p.at];
  return args.within(at, p.room) ? at : 0;
}

template <class T>
void append(const Plan& p, const Args& args, const Steps& at) {
  T* const keys = reinterpret_cast<T*>(args.in[3]) + at[KC];
  T* const values = reinterpret_cast<T*>(args.in[4]) + at[VC];
  for (i64 i = 0; i < p.queries; ++i) {
    const i64 row = position_of(p, args, i);
    for (i64 d = 0; d < p.head; ++d) keys[row * p.kc_row + d * p.kc] = args.input<T>(1)[at[K] + i * p.k_row + d * p.k];
    for (i64 d = 0; d < p.value; ++d)
      values[row * p.vc_row + d * p.vc] = args.input<T>(2)[at[V] + i * p.v_row + d * p.v];
  }
}

struct Rows {
  i64 first, end;  // that a query sees
  double sink;     // minus infinity: there is none
};

// f(keys and values of the head, the query, its result, rows seen, scratch) for every query. Heads are shared among the
// rank's threads; all queries of one read the rows that were written into its caches, so one thread does them.
template <class T, class F>
void for_each_query(const Plan& p, const Args& args, const F& f) {
  constexpr double operations_per_second = 5e9;
  const i64 heads = turns(p.heads);
  const double operations = 2. * heads * turns(p.groups) * p.queries * p.room * (p.head + p.value);
  const i64 parts = std::min<i64>(heads, parts_worth(args, operations / operations_per_second));
  share(args, int(parts), [&](const Args& mine, int part) {
    const PartRange here = range_of_part(heads, 1, part, parts);
    i64 head = 0;
    run_nest(p.heads, [&](Steps at) {
      if (!here.has(head++)) return;
      append<T>(p, mine, at);
      const auto queries_of = [&](Steps in) {
        const double sink = p.sinks ? double(mine.input<T>(6)[in[X]]) : -std::numeric_limits<double>::infinity();
        for (i64 i = 0; i < p.queries; ++i) {
          const i64 own = position_of(p, mine, i);
          f(mine.input<T>(3) + at[KC], mine.input<T>(4) + at[VC], mine.input<T>(0) + in[Q] + i * p.q_row,
            mine.output<T>() + in[O] + i * p.o_row, Rows{p.first_seen(own), own + 1, sink}, mine.scratch);
        }
      };
      run_nest(p.groups, queries_of, 0, at);
    });
  });
  p.padding.clear(args.output<T>());
}

bool accepts_rows(const Call& call) {
  const Plan p = plan_of(call);
  return p.kc == 1 && p.vc == 1;
}

Runner prepare_rows(const Call& call) {
  return with_stored(call.in[0].dtype, [&]<class T>() -> Runner {
    return [p = plan_of(call)](const Args& args) {
      using W = Wide<T>;
      for_each_query<T>(p, args,
                        [&](const T* keys, const T* values, const T* q, T* out, const Rows& rows, std::byte* scratch) {
                          W *const scores = reinterpret_cast<W*>(scratch), *const query = scores + p.room,
                                   *const sum = query + p.head;
                          for (i64 d = 0; d < p.head; ++d) query[d] = q[d * p.q] * W(p.scale);
                          std::fill_n(sum, p.value, W(0));
                          for (i64 j = rows.first; j < rows.end; ++j) {
                            scores[j] = lane_sum<W>(
                                p.head, [](auto x, auto y) { return x * y; }, query, keys + j * p.kc_row);
                            if (p.softcap > 0) scores[j] = W(p.capped(scores[j]));
                          }
                          const W top = std::max(W(rows.sink), lane_max(rows.end - rows.first, scores + rows.first));
                          W total = p.sinks ? std::exp(W(rows.sink) - top) : W(0);
                          for (i64 j = rows.first; j < rows.end; ++j) {
                            const W weight = std::exp(scores[j] - top);
                            const T* row = values + j * p.vc_row;
                            total += weight;
#pragma GCC ivdep
                            for (i64 d = 0; d < p.value; ++d) sum[d] += weight * row[d];
                          }
                          for (i64 d = 0; d < p.value; ++d) out[d * p.o] = T(sum[d] / total);
                        });
    };
  });
}

Runner prepare_reference(const Call& call) {
  return with_stored(call.in[0].dtype, [&]<class T>() -> Runner {
    return [p = plan_of(call)](const Args& args) {
      for_each_query<T>(p, args, [&](const T* keys, const T* values, const T* q, T* out, const Rows& rows, std::byte*) {
        std::vector<double> weights(static_cast<std::size_t>(p.room));
        double top = rows.sink;
        for (i64 j = rows.first; j < rows.end; ++j) {
          double dot = 0;
          for (i64 d = 0; d < p.head; ++d) dot += double(q[d * p.q]) * double(keys[j * p.kc_row + d * p.kc]);
          weights[j] = p.capped(dot * p.scale);
          top = std::max(top, weights[j]);
        }
        double total = p.sinks ? std::exp(rows.sink - top) : 0;
        for (i64 j = rows.first; j < rows.end; ++j) total += weights[j] = std::exp(weights[j] - top);
        for (i64 d = 0; d < p.value; ++d) {
          double sum = 0;
          for (i64 j = rows.first; j < rows.end; ++j) sum += weights[j] * double(values[j * p.vc_row + d * p.vc]);
          out[d * p.o] = T(sum / total);
        }
      });
    };
  });
}

constexpr Kernel kernels[] = {{.name = "rows", .accepts = &accepts_rows, .prepare = &prepare_rows, .shares = true},
                              {.name = "reference", .prepare = &prepare_reference, .shares = true}};

}  // namespace

std::span<const Kernel> cached_attention_kernels() { return kernels; }

}  // namespace stretto
