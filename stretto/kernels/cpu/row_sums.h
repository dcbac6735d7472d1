// Rows that are named are added up in one order, in f32 where they are bf16, and stored once.
//
//   const RowSums p(out, names, in, {over});          // when preparing; `over`: what a name goes over, the operand's
//   sum_rows(p, args.input<T>(0), args.output<T>(), missing, [&](i64 at) { return place_of(names[at]); });
#pragma once
#include <algorithm>
#include <optional>

#include "stretto/base/bf16.h"
#include "stretto/kernels/cpu/padding.h"

namespace stretto {

struct RowSums {
  Nest kept;   // rows of the result; arrays: result, names, operand
  Nest added;  // what one of them adds up; arrays: names, operand
  Nest lanes;  // of a row, without its innermost loop; arrays: result, operand
  Loop inner;
  Padding padding;

  RowSums(const View& out, const View& names, const View& in, const DimSet& over) : padding(out) {
    const DimSet all = without(joined(names.dims, in.dims), over), summed = without(all, out.dims);
    kept = valid_nest(without(names.dims, summed), {&out, &names, &in});
    added = valid_nest(summed, {&names, &in});
    lanes = valid_nest(without(out.dims, names.dims), {&out, &in});
    inner = take_innermost(lanes);
  }
};

// find(where a name lies): where the operand's row begins, from its place by other dims; none: `missing` is added.
template <class T, class Find>
void sum_rows(const RowSums& p, const T* in, T* out, Wide<T> missing, const Find& find) {
  constexpr i64 most = 256;
  Wide<T> sums[most];
  const auto [to_step, from_step] = std::pair(p.inner.step[0], p.inner.step[1]);
  const auto add = [&](const T* x, i64 n) {
    if (from_step == 1)
      for (i64 i = 0; i < n; ++i) sums[i] += x[i];
    else
      for (i64 i = 0; i < n; ++i) sums[i] += x[i * from_step];
  };
  run_nest(p.kept, [&](Steps row) {
    run_nest(p.lanes, [&](Steps lane) {
      for (i64 first = 0; first < p.inner.size; first += most) {
        const i64 n = std::min(most, p.inner.size - first);
        std::fill_n(sums, n, Wide<T>(0));
        run_nest(p.added, [&](Steps at) {
          const std::optional<i64> place = find(row[1] + at[0]);
          if (place) return add(in + row[2] + at[1] + *place + lane[1] + first * from_step, n);
          for (i64 i = 0; i < n; ++i) sums[i] += missing;
        });
        T* const to = out + row[0] + lane[0] + first * to_step;
        for (i64 i = 0; i < n; ++i) to[i * to_step] = T(sums[i]);
      }
    });
  });
  p.padding.clear(out);
}

}  // namespace stretto
