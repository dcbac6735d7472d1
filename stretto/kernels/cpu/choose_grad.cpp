// Per expert: a matrix product per block of its rows adds them up.
#include "stretto/ops/choose_grad.h"

#include "stretto/kernels/cpu/chosen_rows.h"
#include "stretto/kernels/cpu/multiply.h"
#include "stretto/kernels/cpu/place.h"
#include "stretto/ops/contract.h"

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

// f(block, whether it adds to what is there), for blocks that hold all rows; experts without any are cleared.
template <class W, class F>
void for_blocks(const Plan& p, const Args& args, const SortedRows& rows, const F& f) {
  const bool adds = p.adds(args);
  for (i64 e = 0; e < p.space.experts && !adds; ++e)
    if (rows.starts[e] == rows.starts[e + 1]) clear_matrix(p, args.output<W>() + e * p.expert);
  rows.each_block(p.space, [&](const RowBlock& b) { f(b, adds || b.first > rows.starts[b.expert]); });
  if (!adds) p.padding.clear(args.output<W>());
}

constexpr auto blocks = []<class T>(const Plan& p, const Args& args) {
  using W = Wide<T>;
  const i64 k = p.space.k, n = p.space.n;
  const SortedRows rows(p, args.input<std::int32_t>(2), args.scratch);
  W *const gathered = reinterpret_cast<W*>(rows.rest), *const others = gathered + p.space.block_rows() * k;
  Pauses pauses(args);
  for_blocks<W>(p, args, rows, [&](const RowBlock& b, bool add) {
    ProductLines<W> x{.step = k, .summed = true}, g{.step = n, .summed = true};
    if constexpr (std::is_same_v<T, W>) {
      x.data = args.input<T>(0), x.at = rows.a + b.first;
      g.data = args.input<T>(1), g.at = rows.b + b.first;
    } else {
      gather_rows(args.input<T>(0), {rows.a + b.first, b.rows, k}, gathered);
      gather_rows(args.input<T>(1), {rows.b + b.first, b.rows, n}, others);
      x.data = gathered, g.data = others;
    }
    if (p.turned) std::swap(x, g);
    multiply<W>({.size = {p.turned ? n : k, p.turned ? k : n, b.rows},
                 .left = x,
                 .right = g,
                 .out = {.data = args.output<W>() + b.expert * p.expert, .step = p.leading, .add = add}},
                &pauses);
  });
};

void multiply_tiles_grad(const Plan& p, const Args& args) {
  const auto& [experts, all, k, n, places] = p.space;
  const SortedRows rows(p, args.input<std::int32_t>(2), args.scratch);
  const i64 most = p.space.block_rows();
  const auto [down, across] = p.turned ? std::pair(n, k) : std::pair(k, n);  // of a matrix, as it lies
  const TiledBlock t = tiled_block(down, across, most, f32);
  BF16 *const gathered = reinterpret_cast<BF16*>(rows.rest), *const others = gathered + most * k;
  BF16 *const left = others + most * n, *const right = left + bf16_packed(t.m, most);
  for_blocks<float>(p, args, rows, [&](const RowBlock& b, bool add) {
    auto x = as_matrix(args.input<BF16>(0), {rows.a + b.first, b.rows, k}, gathered);
    auto g = as_matrix(args.input<BF16>(1), {rows.b + b.first, b.rows, n}, others);
    if (p.turned) std::swap(x, g);
    for (i64 n0 = 0; n0 < across; n0 += t.n) {
      const i64 nn = std::min(t.n, across - n0);
      bf16_pack_right({g.data + n0, g.pitch}, {b.rows, nn}, right);
      for (i64 m0 = 0; m0 < down; m0 += t.m) {
        const i64 mm = std::min(t.m, down - m0);
        bf16_pack_left({x.data + m0, x.pitch, true}, {mm, b.rows}, left);
        float* const w = args.output<float>() + b.expert * p.expert + m0 * p.leading + n0;
        bf16_multiply(mm, nn, b.rows, left, right, [&](const Bf16Square& r) { put_square(r, add, w, p.leading); });
      }
    }
  });
}

constexpr auto reference = []<class T>(const Plan& p, const Args& args) {
  using W = Wide<T>;
  if (!p.adds(args)) fill_zero(p.out, args.out[0]);
  run_nest(p.rows, [&](Steps row) {
    const i64 e = args.input<std::int32_t>(2)[row[2]] - p.first;
    if (e < 0 || e >= p.space.experts) return;
    const T *x = args.input<T>(0) + row[0], *g = args.input<T>(1) + row[1];
    run_nest(p.inner, [&](Steps k) {
      run_nest(p.outer, [&](Steps n) {
        W& to = args.output<W>()[e * p.expert + k[1] + n[1]];
        to = W(double(to) + double(x[k[0]]) * double(g[n[0]]));
      });
    });
  });
};

}  // namespace

std::span<const Kernel> choose_grad_kernels() {
  return chosen_kernels<&plan_of, multiply_tiles_grad, blocks, reference>;
}

}  // namespace stretto
