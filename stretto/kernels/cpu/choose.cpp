// Rows are sorted by expert; a block of an expert's rows is gathered, and one matrix product does them. Results go back
// to their places; those of one token are added in the order of experts.
#include "stretto/ops/choose.h"

#include "stretto/kernels/cpu/blas.h"
#include "stretto/kernels/cpu/chosen_rows.h"
#include "stretto/kernels/cpu/pauses.h"
#include "stretto/kernels/cpu/place.h"
#include "stretto/kernels/cpu/with_float.h"

namespace stretto {
namespace {

struct Plan : ChosenRows {
  View out;
  Padding padding;
  bool adds = false;  // several rows go to one place
};

Plan plan_of(const Call& call) {
  const View& out = call.out[0];
  Plan p{ChosenRows(call.in[0], out, call.in[1], call.in[2], call.attrs<ChooseAttrs>().expert), out, Padding(out)};
  p.adds = !without(call.in[2].dims, out.dims).empty();
  return p;
}

template <class T>
void scatter_rows(const T* from, i64 rows, i64 n, bool add, const i64* places, T* to) {
  for (i64 i = 0; i < rows; ++i) {
    const T* row = from + i * n;
    T* at = to + places[i];
    if (!add) {
      std::copy_n(row, n, at);
      continue;
    }
#pragma GCC ivdep
    for (i64 j = 0; j < n; ++j) at[j] += row[j];
  }
}

template <class T>
void blocks(const Plan& p, const Args& args) {
  const auto& [experts, all, k, n] = p.space;
  const SortedRows rows(p, args.input<std::int32_t>(2), args.scratch);
  if (p.adds || rows.starts[experts] < all) fill_zero(p.out, args.out[0]);
  T *const x = reinterpret_cast<T*>(rows.rest), *const y = x + p.space.block_rows() * k;
  Pauses pauses(args);
  for (i64 e = 0; e < experts; ++e)
    for (i64 from = rows.starts[e], end = rows.starts[e + 1]; from < end; from += p.space.block) {
      const i64 m = std::min(p.space.block, end - from);
      gather_rows(args.input<T>(0), rows.a + from, m, k, x);
      gemm(false, p.turned, m, n, k, T(1), x, k, args.input<T>(1) + e * p.expert, p.leading, T(0), y, n);
      scatter_rows(y, m, n, p.adds, rows.b + from, args.output<T>());
      pauses.after(m * n * k / 40);  // so many products take as long as one element of a pass
    }
  p.padding.clear(args.output<T>());
}

template <class T>
void reference(const Plan& p, const Args& args) {
  fill_zero(p.out, args.out[0]);
  run_nest(p.rows, [&](Steps row) {
    const i64 e = args.input<std::int32_t>(2)[row[2]] - p.first;
    if (e < 0 || e >= p.space.experts) return;
    const T *x = args.input<T>(0) + row[0], *w = args.input<T>(1) + e * p.expert;
    run_nest(p.outer, [&](Steps n) {
      T& to = args.output<T>()[row[1] + n[0]];
      double sum = to;
      run_nest(p.inner, [&](Steps k) { sum += double(x[k[0]]) * double(w[k[1] + n[1]]); });
      to = T(sum);
    });
  });
}

Runner prepare_blocks(const Call& call) {
  return with_float(call.out[0].dtype,
                    [&]<class T>() -> Runner { return [p = plan_of(call)](const Args& args) { blocks<T>(p, args); }; });
}
Runner prepare_reference(const Call& call) {
  return with_float(call.out[0].dtype, [&]<class T>() -> Runner {
    return [p = plan_of(call)](const Args& args) { reference<T>(p, args); };
  });
}

constexpr Kernel kernels[] = {
    {.name = "blocks", .accepts = [](const Call& c) { return plan_of(c).dense; }, .prepare = &prepare_blocks},
    {.name = "reference", .prepare = &prepare_reference}};

}  // namespace

std::span<const Kernel> choose_kernels() { return kernels; }

}  // namespace stretto
