#include "stretto/kernels/cpu/norm.h"

#include <cmath>
#include <optional>

#include "stretto/kernels/cpu/lanes.h"
#include "stretto/kernels/cpu/padding.h"
#include "stretto/kernels/cpu/pauses.h"
#include "stretto/kernels/cpu/share.h"
#include "stretto/kernels/cpu/with_float.h"
#include "stretto/ops/norm.h"

namespace stretto {
namespace {

// Where operands and results stand in the two ops. Only the centered one has a mean and a bias.
using Index = std::optional<int>;
template <bool centered>
struct Forward {
  static constexpr int x = 0, gain = 1, y = 0, rstd = centered ? 2 : 1;
  static constexpr Index bias = centered ? Index(2) : Index(), mean = centered ? Index(1) : Index();
};
template <bool centered>
struct Backward {
  static constexpr int x = 0, gain = 1, rstd = centered ? 3 : 2, g = centered ? 4 : 3, dx = 0, dgain = 1;
  static constexpr Index mean = centered ? Index(2) : Index(), dbias = centered ? Index(2) : Index();
};
const View no_view;
const View& at(const std::vector<View>& views, Index i) { return i ? views[*i] : no_view; }

struct Plan {
  Nest rows;
  i64 n = 0;  // elements of a row that are no padding
  double eps = 0;
  bool accumulate = false;
  std::vector<Padding> padding;  // per result
  // Strides along the row, for the reference.
  i64 x = 1, y = 1, gain = 1, bias = 1, g = 1, dgain = 1, dbias = 1;
};

template <bool centered>
Plan forward_plan(const Call& call) {
  using I = Forward<centered>;
  const DimId d = call.attrs<NormAttrs>().over;
  const View &x = call.in[I::x], &y = call.out[I::y];
  Plan p{.rows = valid_nest(without(x.dims, {d}), {&x, &y, &at(call.out, I::mean), &call.out[I::rstd]}),
         .n = x.valid(d),
         .eps = call.attrs<NormAttrs>().eps,
         .x = x.stride(d),
         .y = y.stride(d),
         .gain = call.in[I::gain].stride(d),
         .bias = at(call.in, I::bias).stride(d)};
  for (const View& v : call.out) p.padding.emplace_back(v);
  return p;
}

template <bool centered>
Plan backward_plan(const Call& call) {
  using I = Backward<centered>;
  const DimId d = call.attrs<NormGradAttrs>().over;
  const View &x = call.in[I::x], &g = call.in[I::g], &dx = call.out[I::dx];
  Plan p{.rows = valid_nest(without(x.dims, {d}), {&x, &g, &dx, &at(call.in, I::mean), &call.in[I::rstd]}),
         .n = x.valid(d),
         .accumulate = call.accumulate,
         .x = x.stride(d),
         .y = dx.stride(d),
         .gain = call.in[I::gain].stride(d),
         .g = g.stride(d),
         .dgain = call.out[I::dgain].stride(d),
         .dbias = at(call.out, I::dbias).stride(d)};
  for (const View& v : call.out) p.padding.emplace_back(v);
  return p;
}

template <class T>
const T* input(const Args& args, Index i) {
  return i ? args.input<T>(*i) : nullptr;
}
template <class T>
T* output(const Args& args, Index i) {
  return i ? args.output<T>(*i) : nullptr;
}
// The first result is of the operand's type, the others are statistics and sums.
template <class T>
void clear_padding(const Plan& p, const Args& args, bool add) {
  if (!add) p.padding[0].clear(args.output<T>(0));
  for (std::size_t i = 1; i < p.padding.size(); ++i) p.padding[i].clear(args.output<Wide<T>>(int(i)));
}

template <class T, bool centered>
void forward_rows(const Plan& p, const Args& args) {
  using I = Forward<centered>;
  using W = Wide<T>;
  const T *gain = args.input<T>(I::gain), *bias = input<T>(args, I::bias);
  W *means = output<W>(args, I::mean), *rstds = args.output<W>(I::rstd);
  const i64 n = p.n;
  Pauses pauses(args);
  run_nest(p.rows, [&](Steps at) {
    pauses.after(n);
    const T* x = args.input<T>(I::x) + at[0];
    W mean = 0;
    if constexpr (centered)
      mean = lane_sum<W>(
                 n, [](auto v) { return v; }, x) /
             W(n);
    const W square = lane_sum<W>(
                         n, [&](auto v) { return (v - mean) * (v - mean); }, x) /
                     W(n);
    const W rstd = 1 / std::sqrt(square + W(p.eps));
    if (means) means[at[2]] = mean;
    if (rstds) rstds[at[3]] = rstd;
    if (!args.out[I::y]) return;
    T* y = args.output<T>(I::y) + at[1];
#pragma GCC ivdep
    for (i64 i = 0; i < n; ++i) {
      if constexpr (centered)
        y[i] = T((x[i] - mean) * rstd * gain[i] + bias[i]);
      else
        y[i] = T(x[i] * rstd * gain[i]);
    }
  });
  clear_padding<T>(p, args, false);
}

template <class T, bool centered>
void forward_reference(const Plan& p, const Args& args) {
  using I = Forward<centered>;
  const T *gain = args.input<T>(I::gain), *bias = input<T>(args, I::bias);
  Wide<T>*means = output<Wide<T>>(args, I::mean), *rstds = args.output<Wide<T>>(I::rstd);
  run_nest(p.rows, [&](Steps at) {
    const T* x = args.input<T>(I::x) + at[0];
    double mean = 0, square = 0;
    for (i64 i = 0; i < p.n && centered; ++i) mean += double(x[i * p.x]) / double(p.n);
    for (i64 i = 0; i < p.n; ++i) {
      const double z = double(x[i * p.x]) - mean;
      square += z * z / double(p.n);
    }
    const double rstd = 1 / std::sqrt(square + p.eps);
    if (means) means[at[2]] = Wide<T>(mean);
    if (rstds) rstds[at[3]] = Wide<T>(rstd);
    if (!args.out[I::y]) return;
    for (i64 i = 0; i < p.n; ++i)
      args.output<T>(I::y)[at[1] + i * p.y] =
          T((double(x[i * p.x]) - mean) * rstd * double(gain[i * p.gain]) + (bias ? double(bias[i * p.bias]) : 0));
  });
  clear_padding<T>(p, args, false);
}

constexpr double backward_seconds = 1e-9;  // of an element, about

// What a row of the backward pass needs beside its operands.
template <class T>
struct Row {
  const T *x, *g;
  T* dx;
  Wide<T> mean, rstd, a, b;  // a, b: means of g * gain and of g * gain * normalised x
};

template <class T, bool centered, bool add>
void write_dx(const Row<T>& r, const T* gain, i64 n) {
  const T *x = r.x, *g = r.g;
  T* dx = r.dx;
#pragma GCC ivdep
  for (i64 i = 0; i < n; ++i) {
    const Wide<T> h = (x[i] - r.mean) * r.rstd;
    const Wide<T> value = r.rstd * (g[i] * gain[i] - r.a - h * r.b);
    dx[i] = T(add ? dx[i] + value : value);
  }
}

// Adds the sums of some columns over up to four rows, so that the running sums are loaded and stored once per four.
template <class T>
void add_columns(const Row<T>* r, int count, PartRange columns, Wide<T>* dgain, Wide<T>* dbias) {
  const auto [first, end] = columns;
  const auto h = [](const Row<T>& row, i64 i) { return (row.x[i] - row.mean) * row.rstd; };
  if (count == 4) {
    const Row<T> r0 = r[0], r1 = r[1], r2 = r[2], r3 = r[3];
    if (dgain) {
#pragma GCC ivdep
      for (i64 i = first; i < end; ++i)
        dgain[i] += (r0.g[i] * h(r0, i) + r1.g[i] * h(r1, i)) + (r2.g[i] * h(r2, i) + r3.g[i] * h(r3, i));
    }
    if (dbias) {
#pragma GCC ivdep
      for (i64 i = first; i < end; ++i) dbias[i] += (r0.g[i] + r1.g[i]) + (r2.g[i] + r3.g[i]);
    }
    return;
  }
  for (int k = 0; k < count; ++k)
    for (i64 i = first; i < end; ++i) {
      if (dgain) dgain[i] += r[k].g[i] * h(r[k], i);
      if (dbias) dbias[i] += r[k].g[i];
    }
}

// The gradients of some rows, and the sums of some columns over all rows.
template <class T, bool centered>
void backward_part(const Plan& p, const Args& args, PartRange with_dx, PartRange columns) {
  using I = Backward<centered>;
  using W = Wide<T>;
  const bool add = p.accumulate && !args.now.overwrite;
  const T* gain = args.input<T>(I::gain);
  const W* means = input<W>(args, I::mean);
  W *dgain = args.output<W>(I::dgain), *dbias = output<W>(args, I::dbias);
  const i64 n = p.n;
  if (dgain) std::fill(dgain + columns.first, dgain + columns.end, W(0));
  if (dbias) std::fill(dbias + columns.first, dbias + columns.end, W(0));
  Row<T> rows[4];
  int count = 0;
  i64 next = 0;
  // dx may be g itself: the columns are added up first.
  const auto flush = [&] {
    add_columns(rows, count, columns, dgain, dbias);
    for (int k = 0; k < count; ++k) {
      if (!rows[k].dx) continue;
      add ? write_dx<T, centered, true>(rows[k], gain, n) : write_dx<T, centered, false>(rows[k], gain, n);
    }
    count = 0;
  };
  Pauses pauses(args);
  run_nest(p.rows, [&](Steps at) {
    const bool mine = with_dx.has(next++);
    if (!mine && columns.empty()) return;
    pauses.after(n);
    Row<T>& r = rows[count++];
    r = {.x = args.input<T>(I::x) + at[0],
         .g = args.input<T>(I::g) + at[1],
         .dx = mine && args.out[I::dx] ? args.output<T>(I::dx) + at[2] : nullptr,
         .mean = means ? means[at[3]] : W(0),
         .rstd = args.input<W>(I::rstd)[at[4]]};
    if (r.dx) {
      if constexpr (centered)
        r.a = lane_sum<W>(
                  n, [](auto g, auto w) { return g * w; }, r.g, gain) /
              W(n);
      r.b = lane_sum<W>(
                n, [&](auto g, auto w, auto x) { return g * w * ((x - r.mean) * r.rstd); }, r.g, gain, r.x) /
            W(n);
    }
    if (count == 4) flush();
  });
  flush();
}

// Threads share first the columns, whose sums go over all rows in one order, then the rows: dx may be g itself.
template <class T, bool centered>
void backward_rows(const Plan& p, const Args& args) {
  using I = Backward<centered>;
  const i64 rows = turns(p.rows);
  const int parts = parts_worth(args, double(rows) * double(p.n) * backward_seconds);
  if (parts == 1) {
    backward_part<T, centered>(p, args, {0, rows}, {0, p.n});
  } else {
    if (args.out[I::dgain] || output<Wide<T>>(args, I::dbias))
      share(args, parts, [&](const Args& mine, int part) {
        backward_part<T, centered>(p, mine, {}, range_of_part(p.n, 16, part, parts));
      });
    if (args.out[I::dx])
      share(args, parts, [&](const Args& mine, int part) {
        backward_part<T, centered>(p, mine, range_of_part(rows, 1, part, parts), {});
      });
  }
  clear_padding<T>(p, args, p.accumulate && !args.now.overwrite);
}

template <class T, bool centered>
void backward_reference(const Plan& p, const Args& args) {
  using I = Backward<centered>;
  const bool add = p.accumulate && !args.now.overwrite;
  const T* gain = args.input<T>(I::gain);
  const Wide<T>* means = input<Wide<T>>(args, I::mean);
  Wide<T>*dgain = args.output<Wide<T>>(I::dgain), *dbias = output<Wide<T>>(args, I::dbias);
  for (i64 i = 0; i < p.n; ++i) {
    double sum_gain = 0, sum_bias = 0;
    run_nest(p.rows, [&](Steps at) {
      const double g = double(args.input<T>(I::g)[at[1] + i * p.g]), mean = means ? double(means[at[3]]) : 0;
      sum_gain +=
          g * (double(args.input<T>(I::x)[at[0] + i * p.x]) - mean) * double(args.input<Wide<T>>(I::rstd)[at[4]]);
      sum_bias += g;
    });
    if (dgain) dgain[i * p.dgain] = Wide<T>(sum_gain);
    if (dbias) dbias[i * p.dbias] = Wide<T>(sum_bias);
  }
  run_nest(p.rows, [&](Steps at) {
    if (!args.out[I::dx]) return;
    const double mean = means ? double(means[at[3]]) : 0, rstd = double(args.input<Wide<T>>(I::rstd)[at[4]]);
    double a = 0, b = 0;
    const auto w = [&](i64 i) { return double(args.input<T>(I::g)[at[1] + i * p.g]) * double(gain[i * p.gain]); };
    const auto h = [&](i64 i) { return (double(args.input<T>(I::x)[at[0] + i * p.x]) - mean) * rstd; };
    for (i64 i = 0; i < p.n; ++i) {
      if (centered) a += w(i) / double(p.n);
      b += w(i) * h(i) / double(p.n);
    }
    for (i64 i = 0; i < p.n; ++i) {
      T& dx = args.output<T>(I::dx)[at[2] + i * p.y];
      const double value = rstd * (w(i) - a - h(i) * b);
      dx = add ? T(double(dx) + value) : T(value);
    }
  });
  clear_padding<T>(p, args, add);
}

template <bool centered>
bool unit_forward(const Call& call) {
  const Plan p = forward_plan<centered>(call);
  return p.n == 1 || (p.x == 1 && p.y == 1 && p.gain == 1 && (!centered || p.bias == 1));
}
template <bool centered>
bool unit_backward(const Call& call) {
  const Plan p = backward_plan<centered>(call);
  return p.n == 1 || (p.x == 1 && p.y == 1 && p.gain == 1 && p.g == 1 && p.dgain == 1 && (!centered || p.dbias == 1));
}

template <bool centered, auto in_f32, auto in_f64, auto in_bf16>
Runner forward(const Call& call) {
  const DType t = call.in[0].dtype;
  const auto run = t == f32 ? in_f32 : t == f64 ? in_f64 : in_bf16;
  return [p = forward_plan<centered>(call), run](const Args& args) { run(p, args); };
}
template <bool centered, auto in_f32, auto in_f64, auto in_bf16>
Runner backward(const Call& call) {
  const DType t = call.in[0].dtype;
  const auto run = t == f32 ? in_f32 : t == f64 ? in_f64 : in_bf16;
  return [p = backward_plan<centered>(call), run](const Args& args) { run(p, args); };
}

template <bool c>
constexpr Kernel forward_kernels[] = {
    {"rows", &unit_forward<c>, &forward<c, &forward_rows<float, c>, &forward_rows<double, c>, &forward_rows<BF16, c>>},
    {"reference", nullptr,
     &forward<c, &forward_reference<float, c>, &forward_reference<double, c>, &forward_reference<BF16, c>>}};
template <bool c>
constexpr Kernel backward_kernels[] = {
    {"rows", &unit_backward<c>,
     &backward<c, &backward_rows<float, c>, &backward_rows<double, c>, &backward_rows<BF16, c>>, true},
    {"reference", nullptr,
     &backward<c, &backward_reference<float, c>, &backward_reference<double, c>, &backward_reference<BF16, c>>}};

}  // namespace

std::span<const Kernel> norm_kernels(bool centered) {
  return centered ? std::span(forward_kernels<true>) : std::span(forward_kernels<false>);
}
std::span<const Kernel> norm_grad_kernels(bool centered) {
  return centered ? std::span(backward_kernels<true>) : std::span(backward_kernels<false>);
}

}  // namespace stretto
