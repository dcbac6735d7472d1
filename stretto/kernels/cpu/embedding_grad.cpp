// Rows are added in the order of the ids' dims. The forward pass has checked the ids; here a shard's others are
// skipped.
#include "stretto/ops/embedding_grad.h"

#include "stretto/kernels/cpu/padding.h"
#include "stretto/kernels/cpu/with_float.h"

namespace stretto {
namespace {

struct Plan {
  Nest ids;    // arrays: ids, g
  Nest row;    // arrays: g, result
  Nest table;  // of the result
  i64 row_stride = 0, first = 0, rows = 0;
  bool accumulate = false;
};

Plan plan_of(const Call& call) {
  const View &g = call.in[0], &ids = call.in[1], &out = call.out[0];
  const EmbeddingGradAttrs& a = call.attrs<EmbeddingGradAttrs>();
  const DimId vocab = a.vocab;
  const std::size_t at = std::size_t(position(out.dims, vocab));
  Plan p{.ids = valid_nest(ids.dims, {&ids, &g}),
         .row = valid_nest(without(out.dims, {vocab}), {&g, &out}),
         .row_stride = out.strides[at],
         .first = a.first + out.offsets[at],
         .rows = out.valid(vocab),
         .accumulate = call.accumulate};
  for (DimId d : out.dims) add_loop(p.table, out.size(d), {out.stride(d)});
  return p;
}

bool accepts_rows(const Call& call) {
  Plan p = plan_of(call);
  const Loop inner = take_innermost(p.row), flat = take_innermost(p.table);
  return (inner.size == 1 || (inner.step[0] == 1 && inner.step[1] == 1)) && flat.step[0] <= 1;
}

template <bool contiguous>
Runner prepare(const Call& call) {
  return with_stored(call.in[0].dtype, [&]<class T>() -> Runner {
    using W = Wide<T>;  // the result is summed up in place
    Plan p = plan_of(call);
    const i64 n = contiguous ? take_innermost(p.row).size : 1, flat = contiguous ? take_innermost(p.table).size : 1;
    return [p, n, flat](const Args& args) {
      if (!p.accumulate || args.now.overwrite)
        run_nest(p.table, [&](Steps at) { std::fill_n(args.output<W>() + at[0], flat, W(0)); });
      run_nest(p.ids, [&](Steps id) {
        const i64 local = i64(args.input<std::int32_t>(1)[id[0]]) - p.first;
        if (local < 0 || local >= p.rows) return;
        run_nest(p.row, [&](Steps at) {
          const T* g = args.input<T>(0) + id[1] + at[0];
          W* out = args.output<W>() + local * p.row_stride + at[1];
#pragma GCC ivdep
          for (i64 i = 0; i < n; ++i) out[i] += g[i];
        });
      });
    };
  });
}

constexpr Kernel kernels[] = {{.name = "rows", .accepts = &accepts_rows, .prepare = &prepare<true>},
                              {.name = "reference", .prepare = &prepare<false>}};

}  // namespace

std::span<const Kernel> embedding_grad_kernels() { return kernels; }

}  // namespace stretto
