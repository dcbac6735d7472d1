// Rows are sorted by expert, and one matrix product does a block of an expert's rows: where they lie, if they do so as
// a matrix, else gathered. Results go to their places; those of one token are added in the order of experts.
#include "stretto/ops/choose.h"

#include "stretto/kernels/cpu/blas.h"
#include "stretto/kernels/cpu/chosen_rows.h"
#include "stretto/kernels/cpu/place.h"

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

constexpr auto blocks = []<class T>(const Plan& p, const Args& args) {
  const auto& [experts, all, k, n] = p.space;
  const SortedRows rows(p, args.input<std::int32_t>(2), args.scratch);
  if (p.adds || rows.starts[experts] < all) fill_zero(p.out, args.out[0]);
  T *const gathered = reinterpret_cast<T*>(rows.rest), *const made = gathered + p.space.block_rows() * k;
  rows.each_block(args, p.space, [&](const RowBlock& b) {
    const i64 *const from = rows.a + b.first, *const to = rows.b + b.first;
    const auto x = as_matrix(args.input<T>(0), {from, b.rows, k}, gathered);
    const auto pitch = p.adds ? std::nullopt : RowPlaces{to, b.rows, n}.pitch();
    const RowMatrix<T> y = pitch ? RowMatrix<T>{args.output<T>() + to[0], *pitch} : RowMatrix<T>{made, n};
    gemm(false, p.turned, b.rows, n, k, T(1), x.data, x.pitch, args.input<T>(1) + b.expert * p.expert, p.leading, T(0),
         y.data, y.pitch);
    if (!pitch) scatter_rows(made, b.rows, n, p.adds, to, args.output<T>());
  });
  p.padding.clear(args.output<T>());
};

constexpr auto reference = []<class T>(const Plan& p, const Args& args) {
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
};

}  // namespace

std::span<const Kernel> choose_kernels() { return chosen_kernels<&plan_of, blocks, reference>; }

}  // namespace stretto
