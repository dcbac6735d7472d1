#include "stretto/kernels/cpu/entropy.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "stretto/kernels/cpu/exp_row.h"
#include "stretto/kernels/cpu/padding.h"
#include "stretto/kernels/cpu/pauses.h"
#include "stretto/kernels/cpu/share.h"
#include "stretto/kernels/cpu/with_float.h"
#include "stretto/ops/cross_entropy.h"
#include "stretto/ops/cross_entropy_grad.h"

namespace stretto {
namespace {

constexpr double seconds_each = 1.5e-9;  // of an element, about

struct Plan {
  Nest rows;  // arrays: logits, labels, dlogits
  i64 n = 0, ignore = 0, x = 1, d = 1;
  Padding padding;
};

template <bool with_sum>
Plan plan_of(const Call& call) {
  const auto& a = call.attrs<std::conditional_t<with_sum, CrossEntropyAttrs, CrossEntropyGradAttrs>>();
  const View &x = call.in[0], &labels = call.in[1], &d = call.out[with_sum ? 1 : 0];
  return {.rows = valid_nest(without(x.dims, {a.over}), {&x, &labels, &d}),
          .n = x.valid(a.over),
          .ignore = a.ignore,
          .x = x.stride(a.over),
          .d = d.stride(a.over),
          .padding = Padding(d)};
}

// The label at a place, unless it does not count; one that is no class makes the loss NaN and does not count.
std::optional<i64> label_at(const Plan& p, const Args& args, i64 at, double& loss) {
  const i64 label = args.input<std::int32_t>(1)[at];
  if (label == p.ignore) return std::nullopt;
  if (args.within(label, p.n)) return label;
  loss = std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

// Where a row of exponentials can lie before it is scaled: where the result will, unless that is bf16.
template <class T>
Wide<T>* wide_row(T* d) {
  if constexpr (stored_wide<T>)
    return d;
  else
    return nullptr;
}

// The gradients of some rows, and what each adds to the loss, where somebody asks.
template <class T>
void some_rows(const Plan& p, const Args& args, T* out, PartRange mine, double* losses) {
  using W = Wide<T>;
  const double scale = *args.input<double>(2);
  i64 next = 0;
  Pauses pauses(args);
  run_nest(p.rows, [&](Steps at) {
    const i64 row = next++;
    if (!mine.has(row)) return;
    double unread = 0;
    double& loss = losses ? losses[row] : unread;
    loss = 0;
    pauses.after(p.n);
    const T* x = args.input<T>(0) + at[0];
    T* d = out ? out + at[2] : nullptr;
    const std::optional<i64> label = label_at(p, args, at[1], loss);
    if (!label) {
      if (d) std::fill_n(d, p.n, T(0));
      return;
    }
    const W top = lane_max<T>(p.n, x);
    const W target = x[*label];  // d may lie where x is
    const W sum = exp_row(x, wide_row(d), p.n, top);
    loss = std::log(double(sum)) + (double(top) - double(target));
    if (!d) return;
    const W factor = W(scale / double(sum));
    if constexpr (stored_wide<T>) {
#pragma GCC ivdep
      for (i64 i = 0; i < p.n; ++i) d[i] *= factor;
      d[*label] -= T(scale);
    } else {  // again, as the exponentials have no place to lie in f32
      scaled_exp_row(x, d, p.n, top, factor);
      d[*label] = T(factor * decay(target - top) - W(scale));
    }
  });
}

// The losses are added in the order of rows, whichever threads have made them.
template <class T, bool with_sum>
void rows(const Plan& p, const Args& args) {
  T* const out = args.output<T>(with_sum ? 1 : 0);
  const i64 rows = turns(p.rows);
  double* const losses = with_sum ? reinterpret_cast<double*>(args.scratch) : nullptr;
  const int parts = parts_worth(args, double(rows) * double(p.n) * seconds_each);
  share(args, parts,
        [&](const Args& mine, int part) { some_rows<T>(p, mine, out, range_of_part(rows, 1, part, parts), losses); });
  if (with_sum && args.out[0]) *args.output<double>(0) = std::accumulate(losses, losses + rows, 0.0);
  p.padding.clear(out);
}

template <class T, bool with_sum>
void reference(const Plan& p, const Args& args) {
  const double scale = *args.input<double>(2);
  T* const out = args.output<T>(with_sum ? 1 : 0);
  double loss = 0;
  run_nest(p.rows, [&](Steps at) {
    const T* x = args.input<T>(0) + at[0];
    const std::optional<i64> label = label_at(p, args, at[1], loss);
    double top = -std::numeric_limits<double>::infinity(), sum = 0;
    for (i64 i = 0; i < p.n; ++i) top = std::max(top, double(x[i * p.x]));
    for (i64 i = 0; i < p.n; ++i) sum += std::exp(double(x[i * p.x]) - top);
    if (label) loss += std::log(sum) + top - double(x[*label * p.x]);
    for (i64 i = 0; i < p.n && out; ++i)
      out[at[2] + i * p.d] =
          label ? T(scale * (std::exp(double(x[i * p.x]) - top) / sum - (i == *label ? 1 : 0))) : T(0);
  });
  if (with_sum && args.out[0]) *args.output<double>(0) = loss;
  p.padding.clear(out);
}

template <bool with_sum>
bool accepts_rows(const Call& call) {
  const Plan p = plan_of<with_sum>(call);
  return p.x == 1 && p.d == 1;
}

template <bool with_sum, auto in_f32, auto in_f64, auto in_bf16>
Runner prepare(const Call& call) {
  const DType t = call.in[0].dtype;
  const auto run = t == f32 ? in_f32 : t == f64 ? in_f64 : in_bf16;
  return [p = plan_of<with_sum>(call), run](const Args& args) { run(p, args); };
}

template <bool s>
constexpr Kernel kernels[] = {
    {"rows", &accepts_rows<s>, &prepare<s, &rows<float, s>, &rows<double, s>, &rows<BF16, s>>, true},
    {"reference", nullptr, &prepare<s, &reference<float, s>, &reference<double, s>, &reference<BF16, s>>}};

}  // namespace

std::span<const Kernel> entropy_kernels(bool with_sum) {
  return with_sum ? std::span(kernels<true>) : std::span(kernels<false>);
}

}  // namespace stretto
