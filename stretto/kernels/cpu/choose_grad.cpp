// Per expert: a matrix product per block of its rows adds them up.
#include "stretto/ops/choose_grad.h"

#include "stretto/kernels/cpu/blas.h"
#include "stretto/kernels/cpu/chosen_rows.h"
#include "stretto/kernels/cpu/place.h"

namespace stretto {
namespace {

struct Plan : ChosenRows {
  View out;
  Padding padding;
  bool accumulate = false;
  bool adds(const Args& args) const { return accumulate && !args.now.overwrite; }
};

Plan plan_of(const Call& call) {
  const View& out = call.out[0];
  return {ChosenRows(call.in[0], call.in[1], out, call.in[2], call.attrs<ChooseGradAttrs>().expert), out, Padding(out),
          call.accumulate};
}

template <class T>
void clear_matrix(const Plan& p, T* w) {
  const auto [rows, columns] = p.turned ? std::pair(p.space.n, p.space.k) : std::pair(p.space.k, p.space.n);
  for (i64 i = 0; i < rows; ++i) std::fill_n(w + i * p.leading, columns, T(0));
}

constexpr auto blocks = []<class T>(const Plan& p, const Args& args) {
  const auto& [experts, all, k, n] = p.space;
  const SortedRows rows(p, args.input<std::int32_t>(2), args.scratch);
  T *const gathered = reinterpret_cast<T*>(rows.rest), *const others = gathered + p.space.block_rows() * k;
  const bool adds = p.adds(args);
  for (i64 e = 0; e < experts && !adds; ++e)
    if (rows.starts[e] == rows.starts[e + 1]) clear_matrix(p, args.output<T>() + e * p.expert);
  rows.each_block(args, p.space, [&](const RowBlock& b) {
    const auto x = as_matrix(args.input<T>(0), {rows.a + b.first, b.rows, k}, gathered);
    const auto g = as_matrix(args.input<T>(1), {rows.b + b.first, b.rows, n}, others);
    T* const w = args.output<T>() + b.expert * p.expert;
    const T beta = adds || b.first > rows.starts[b.expert] ? T(1) : T(0);
    if (p.turned)
      gemm(true, false, n, k, b.rows, T(1), g.data, g.pitch, x.data, x.pitch, beta, w, p.leading);
    else
      gemm(true, false, k, n, b.rows, T(1), x.data, x.pitch, g.data, g.pitch, beta, w, p.leading);
  });
  if (!adds) p.padding.clear(args.output<T>());
};

constexpr auto reference = []<class T>(const Plan& p, const Args& args) {
  if (!p.adds(args)) fill_zero(p.out, args.out[0]);
  run_nest(p.rows, [&](Steps row) {
    const i64 e = args.input<std::int32_t>(2)[row[2]] - p.first;
    if (e < 0 || e >= p.space.experts) return;
    const T *x = args.input<T>(0) + row[0], *g = args.input<T>(1) + row[1];
    run_nest(p.inner, [&](Steps k) {
      run_nest(p.outer, [&](Steps n) {
        T& to = args.output<T>()[e * p.expert + k[1] + n[1]];
        to = T(double(to) + double(x[k[0]]) * double(g[n[0]]));
      });
    });
  });
};

}  // namespace

std::span<const Kernel> choose_grad_kernels() { return chosen_kernels<&plan_of, blocks, reference>; }

}  // namespace stretto
