// Per expert: its rows of both operands are gathered block by block, and a matrix product adds them up.
#include "stretto/ops/choose_grad.h"

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

template <class T>
void blocks(const Plan& p, const Args& args) {
  const auto& [experts, all, k, n] = p.space;
  const SortedRows rows(p, args.input<std::int32_t>(2), args.scratch);
  T *const x = reinterpret_cast<T*>(rows.rest), *const g = x + p.space.block_rows() * k;
  Pauses pauses(args);
  for (i64 e = 0; e < experts; ++e) {
    T* w = args.output<T>() + e * p.expert;
    const i64 begin = rows.starts[e], end = rows.starts[e + 1];
    if (begin == end && !p.adds(args)) clear_matrix(p, w);
    for (i64 from = begin; from < end; from += p.space.block) {
      const i64 m = std::min(p.space.block, end - from);
      gather_rows(args.input<T>(0), rows.a + from, m, k, x);
      gather_rows(args.input<T>(1), rows.b + from, m, n, g);
      const T beta = p.adds(args) || from > begin ? T(1) : T(0);
      if (p.turned)
        gemm(true, false, n, k, m, T(1), g, n, x, k, beta, w, p.leading);
      else
        gemm(true, false, k, n, m, T(1), x, k, g, n, beta, w, p.leading);
      pauses.after(m * n * k / 40);  // so many products take as long as one element of a pass
    }
  }
  if (!p.adds(args)) p.padding.clear(args.output<T>());
}

template <class T>
void reference(const Plan& p, const Args& args) {
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

std::span<const Kernel> choose_grad_kernels() { return kernels; }

}  // namespace stretto
