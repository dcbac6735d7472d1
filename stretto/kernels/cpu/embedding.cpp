// Rows are gathered by id. A table may be a shard: ids of rows that are elsewhere give zero.
#include "stretto/ops/embedding.h"

#include <cstring>
#include <limits>

#include "stretto/kernels/cpu/padding.h"
#include "stretto/kernels/cpu/with_float.h"

namespace stretto {
namespace {

struct Plan {
  Nest ids;  // arrays: ids, result
  Nest row;  // arrays: table, result
  i64 row_stride = 0, first = 0, rows = 0, limit = 0;
  Padding padding;
};

Plan plan_of(const Call& call) {
  const View &table = call.in[0], &ids = call.in[1], &out = call.out[0];
  const auto& [vocab, whole, first] = call.attrs<EmbeddingAttrs>();
  const std::size_t at = std::size_t(position(table.dims, vocab));
  return {.ids = valid_nest(ids.dims, {&ids, &out}),
          .row = valid_nest(without(table.dims, {vocab}), {&table, &out}),
          .row_stride = table.strides[at],
          .first = first + table.offsets[at],
          .rows = table.valid(vocab),
          .limit = whole == vocab ? table.limits[at] : call.graph.dim(whole).valid(),
          .padding = Padding(out)};
}

// f(the id's row in the table, or null: one number all along it, offset in the result) for every id.
template <class T, class F>
void for_each_row(const Plan& p, const Args& args, const F& f) {
  const std::int32_t* ids = args.input<std::int32_t>(1);
  run_nest(p.ids, [&](Steps at) {
    const i64 id = ids[at[0]], local = id - p.first;
    if (!args.within(id, p.limit)) return f(nullptr, std::numeric_limits<T>::quiet_NaN(), at[1]);
    f(local >= 0 && local < p.rows ? args.input<T>(0) + local * p.row_stride : nullptr, T(0), at[1]);
  });
}

bool accepts_rows(const Call& call) {
  Plan p = plan_of(call);
  const Loop inner = take_innermost(p.row);
  return inner.size == 1 || (inner.step[0] == 1 && inner.step[1] == 1);
}

Runner prepare_rows(const Call& call) {
  return with_stored(call.out[0].dtype, [&]<class T>() -> Runner {
    Plan p = plan_of(call);
    const i64 n = take_innermost(p.row).size;
    return [p, n](const Args& args) {
      for_each_row<T>(p, args, [&](const T* from, T all, i64 to) {
        run_nest(p.row, [&](Steps at) {
          T* out = args.output<T>() + to + at[1];
          if (from)
            std::memcpy(out, from + at[0], n * sizeof(T));
          else
            std::fill_n(out, n, all);
        });
      });
      p.padding.clear(args.output<T>());
    };
  });
}

Runner prepare_reference(const Call& call) {
  return with_stored(call.out[0].dtype, [&]<class T>() -> Runner {
    return [p = plan_of(call)](const Args& args) {
      for_each_row<T>(p, args, [&](const T* from, T all, i64 to) {
        run_nest(p.row, [&](Steps at) { args.output<T>()[to + at[1]] = from ? from[at[0]] : all; });
      });
      p.padding.clear(args.output<T>());
    };
  });
}

constexpr Kernel kernels[] = {{.name = "rows", .accepts = &accepts_rows, .prepare = &prepare_rows},
                              {.name = "reference", .prepare = &prepare_reference}};

}  // namespace

std::span<const Kernel> embedding_kernels() { return kernels; }

}  // namespace stretto
