// Rows are sorted by expert, and one matrix product does a block of an expert's rows where they lie. Results go to
// their places; those of one token are added in the order of experts.
#include "stretto/ops/choose.h"

#include "stretto/kernels/cpu/chosen_rows.h"
#include "stretto/kernels/cpu/multiply.h"
#include "stretto/kernels/cpu/place.h"
#include "stretto/ops/contract.h"

namespace stretto {
namespace {

struct Plan : ChosenRows {
  View out;
  Padding padding;
  bool adds = false;  // several rows go to one place
  Nest kept, added;   // rows, by the places that they go to; arrays: x, out, which
  Nest stored;        // of a bf16 result that rows are added up for: arrays: number of the place, out
};

// Numbers the places of a result that rows go to.
View numbered(const View& out, const DimSet& rows) {
  View v = out;
  i64 stride = 1;
  for (std::size_t i = v.dims.size(); i-- > 0;) {
    const bool row = contains(rows, v.dims[i]);
    v.strides[i] = row ? stride : 0;
    stride *= row ? v.sizes[i] : 1;
  }
  return v;
}

Plan plan_of(const Call& call) {
  const View &out = call.out[0], &x = call.in[0], &which = call.in[2];
  Plan p{ChosenRows(x, out, call.in[1], which, call.attrs<ChooseAttrs>().expert), out, Padding(out)};
  const DimSet summed = without(which.dims, out.dims), places = without(which.dims, summed);
  p.adds = !summed.empty();
  p.kept = valid_nest(places, {&x, &out, &which});
  p.added = valid_nest(summed, {&x, &out, &which});
  if (!p.adds || out.dtype != bf16) return p;
  const View number = numbered(out, which.dims);
  p.rows = valid_nest(which.dims, {&x, &number, &which});
  p.stored = valid_nest(places, {&number, &out});
  p.space.places = 1;
  for (DimId d : places) p.space.places *= out.size(d);
  return p;
}

template <class T>
void multiply_blocks(const Plan& p, const Args& args) {
  const SortedRows rows(p, args.input<std::int32_t>(2), args.scratch);
  const i64 k = p.space.k, n = p.space.n;
  if (p.adds || rows.starts[p.space.experts] < p.space.rows) fill_zero(p.out, args.out[0]);
  Pauses pauses(args);
  rows.each_block(p.space, [&](const RowBlock& b) {
    const T* const w = args.input<T>(1) + b.expert * p.expert;
    multiply<T>({.size = {b.rows, n, k},
                 .left = {.data = args.input<T>(0), .at = rows.a + b.first},
                 .right = {.data = w, .step = p.leading, .summed = !p.turned},
                 .out = {.data = args.output<T>(), .at = rows.b + b.first, .add = p.adds}},
                &pauses);
  });
  p.padding.clear(args.output<T>());
}

// Some columns of a result in bf16. What rows are added up for is summed in f32, and rounded when all have come.
struct Columns {
  const Plan& p;
  const SortedRows& rows;
  i64 first, count;
  float* sums;
  BF16* out;

  void begin() const {
    if (p.adds) std::fill_n(sums, p.space.places * count, 0.f);
  }
  // Of a sorted row: some of these columns.
  void put(i64 row, i64 column, i64 n, const float* values) const {
    if (p.adds) {
      float* const to = sums + rows.b[row] * count + column;
      for (i64 j = 0; j < n; ++j) to[j] += values[j];
    } else {
      narrow(values, n, out + rows.b[row] + first + column);
    }
  }
  void end() const {
    if (!p.adds) return;
    run_nest(p.stored, [&](Steps at) { narrow(sums + at[0] * count, count, out + at[1] + first); });
  }
};

template <class F>
void for_columns(const Plan& p, const Args& args, const SortedRows& rows, i64 most, float* sums, const F& f) {
  BF16* const out = args.output<BF16>();
  if (!p.adds && rows.starts[p.space.experts] < p.space.rows) fill_zero(p.out, args.out[0]);
  for (i64 n0 = 0; n0 < p.space.n; n0 += most) {
    const Columns c{p, rows, n0, std::min(most, p.space.n - n0), sums, out};
    c.begin(), f(c), c.end();
  }
  p.padding.clear(out);
}

// Blocks of rows and of their expert's matrix are widened into scratch and multiplied there.
void multiply_widened(const Plan& p, const Args& args) {
  const SortedRows rows(p, args.input<std::int32_t>(2), args.scratch);
  const choosing::Workspace& s = p.space;
  const i64 most_k = s.summed(), most_n = s.columns();
  float *const left = reinterpret_cast<float*>(rows.rest), *const right = left + s.block_rows() * most_k;
  float *const made = right + most_k * most_n, *const sums = made + s.block_rows() * most_n;
  Pauses pauses(args);
  for_columns(p, args, rows, most_n, sums, [&](const Columns& c) {
    rows.each_block(s, [&](const RowBlock& b) {
      const BF16* const w = args.input<BF16>(1) + b.expert * p.expert;
      for (i64 k0 = 0; k0 < s.k; k0 += most_k) {
        const i64 k = std::min(most_k, s.k - k0), lines = p.turned ? c.count : k, length = p.turned ? k : c.count;
        gather_rows(args.input<BF16>(0) + k0, {rows.a + b.first, b.rows, k}, left);
        const BF16* const from = w + (p.turned ? c.first * p.leading + k0 : k0 * p.leading + c.first);
        for (i64 i = 0; i < lines; ++i) widen(from + i * p.leading, length, right + i * length);
        gemm(false, p.turned, b.rows, c.count, k, left, k, right, length, k0 > 0, made, c.count, &pauses);
      }
      for (i64 i = 0; i < b.rows; ++i) c.put(b.first + i, 0, c.count, made + i * c.count);
    });
  });
}

void multiply_tiles(const Plan& p, const Args& args) {
  const SortedRows rows(p, args.input<std::int32_t>(2), args.scratch);
  const choosing::Workspace& s = p.space;
  const TiledBlock t = tiled_block(s.block_rows(), s.columns(), s.k, bf16);
  BF16 *const gathered = reinterpret_cast<BF16*>(rows.rest), *const left = gathered + t.m * s.k;
  BF16* const right = left + bf16_packed(t.m, s.k);
  float* const sums = reinterpret_cast<float*>(right + bf16_packed(t.n, s.k));
  Pauses pauses(args);
  for_columns(p, args, rows, std::min(t.n, s.columns()), sums, [&](const Columns& c) {
    for (i64 e = 0; e < s.experts; ++e) {
      const i64 end = rows.starts[e + 1];
      if (rows.starts[e] == end) continue;
      const BF16* const w = args.input<BF16>(1) + e * p.expert + c.first * (p.turned ? p.leading : 1);
      bf16_pack_right({w, p.leading, p.turned}, {s.k, c.count}, right);
      for (i64 row = rows.starts[e]; row < end; row += t.m) {
        const i64 m = std::min(t.m, end - row);
        const auto x = as_matrix(args.input<BF16>(0), {rows.a + row, m, s.k}, gathered);
        bf16_pack_left({x.data, x.pitch}, {m, s.k}, left);
        bf16_multiply(m, c.count, s.k, left, right, [&](const Bf16Square& r) {
          for (i64 i = 0; i < r.rows; ++i) c.put(row + r.row + i, r.column, r.columns, r.sums + i * bf16_square);
        });
        pauses.after(m * c.count * s.k / 400);
      }
    }
  });
}

constexpr auto blocks = []<class T>(const Plan& p, const Args& args) {
  if constexpr (std::is_same_v<T, BF16>)
    multiply_widened(p, args);
  else
    multiply_blocks<T>(p, args);
};

constexpr auto reference = []<class T>(const Plan& p, const Args& args) {
  fill_zero(p.out, args.out[0]);
  run_nest(p.kept, [&](Steps place) {
    run_nest(p.outer, [&](Steps n) {
      Wide<T> sum = 0;
      run_nest(p.added, [&](Steps row) {
        const i64 e = args.input<std::int32_t>(2)[place[2] + row[2]] - p.first;
        if (e < 0 || e >= p.space.experts) return;
        const T *x = args.input<T>(0) + place[0] + row[0], *w = args.input<T>(1) + e * p.expert + n[1];
        double more = sum;
        run_nest(p.inner, [&](Steps k) { more += double(x[k[0]]) * double(w[k[1]]); });
        sum = Wide<T>(more);
      });
      args.output<T>()[place[1] + n[0]] = T(sum);
    });
  });
};

}  // namespace

std::span<const Kernel> choose_kernels() { return chosen_kernels<&plan_of, multiply_tiles, blocks, reference>; }

}  // namespace stretto
