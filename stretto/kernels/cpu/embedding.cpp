// Rows are gathered by id. A table may be a shard: ids of rows that are elsewhere give zero.
#include "stretto/ops/embedding.h"

#include <cstring>

#include "stretto/kernels/cpu/padding.h"
#include "stretto/kernels/cpu/with_float.h"

namespace stretto {
namespace {

struct Plan {
  Nest ids;  // arrays: ids, result
  Nest row;  // arrays: table, result
  i64 row_stride = 0, first = 0, rows = 0, limit = 0;
  std::string vocab;
  Padding padding;
};

Plan plan_of(const Call& call) {
  const View &table = call.in[0], &ids = call.in[1], &out = call.out[0];
  const DimId vocab = call.attrs<EmbeddingAttrs>().vocab;
  const std::size_t at = std::size_t(position(table.dims, vocab));
  return {.ids = valid_nest(ids.dims, {&ids, &out}),
          .row = valid_nest(without(table.dims, {vocab}), {&table, &out}),
          .row_stride = table.strides[at],
          .first = table.offsets[at],
          .rows = table.sizes[at],
          .limit = table.limits[at],
          .vocab = call.graph.dim(vocab).name,
          .padding = Padding(out)};
}

// f(offset of the id's row in the table or -1, offset in the result) for every id.
template <class F>
void for_each_row(const Plan& p, const std::int32_t* ids, const F& f) {
  run_nest(p.ids, [&](Steps at) {
    const i64 id = ids[at[0]];
    if (id < 0 || id >= p.limit)
      throw Error("embedding", "id {} is outside of dim '{}', which has {} rows", id, p.vocab, p.limit)
          .hint("compare the vocabulary of the tokenizer with the model's");
    const i64 local = id - p.first;
    f(local >= 0 && local < p.rows ? local * p.row_stride : -1, at[1]);
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
    const std::size_t bytes = std::size_t(take_innermost(p.row).size) * sizeof(T);
    return [p, bytes](const Args& args) {
      for_each_row(p, args.input<std::int32_t>(1), [&](i64 from, i64 to) {
        run_nest(p.row, [&](Steps at) {
          T* out = args.output<T>() + to + at[1];
          if (from < 0)
            std::memset(out, 0, bytes);
          else
            std::memcpy(out, args.input<T>(0) + from + at[0], bytes);
        });
      });
      p.padding.clear(args.output<T>());
    };
  });
}

Runner prepare_reference(const Call& call) {
  return with_stored(call.out[0].dtype, [&]<class T>() -> Runner {
    return [p = plan_of(call)](const Args& args) {
      for_each_row(p, args.input<std::int32_t>(1), [&](i64 from, i64 to) {
        run_nest(p.row,
                 [&](Steps at) { args.output<T>()[to + at[1]] = from < 0 ? T(0) : args.input<T>(0)[from + at[0]]; });
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
