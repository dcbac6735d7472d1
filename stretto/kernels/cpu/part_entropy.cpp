#include "stretto/ops/part_entropy.h"

#include <cmath>
#include <limits>

#include "stretto/kernels/cpu/exp_row.h"
#include "stretto/kernels/cpu/padding.h"
#include "stretto/kernels/cpu/pauses.h"
#include "stretto/kernels/cpu/with_float.h"

namespace stretto {
namespace {

struct Plan {
  Nest rows;  // arrays: logits, labels, log_sum, label
  i64 n = 0, x = 1, first = 0, classes = 0, ignore = 0;
  Padding log_sums, labels;
};

Plan plan_of(const Call& call) {
  const PartEntropyAttrs& a = call.attrs<PartEntropyAttrs>();
  const View &x = call.in[0], &labels = call.in[1], &log_sum = call.out[0], &label = call.out[1];
  return {.rows = valid_nest(without(x.dims, {a.over}), {&x, &labels, &log_sum, &label}),
          .n = x.valid(a.over),
          .x = x.stride(a.over),
          .first = a.first,
          .classes = call.graph.dim(a.whole).valid(),
          .ignore = a.ignore,
          .log_sums = Padding(log_sum),
          .labels = Padding(label)};
}

// The label's logit; one that is no class makes the loss NaN.
template <class T>
Wide<T> logit_of(const Plan& p, const Args& args, const T* x, i64 label) {
  if (label == p.ignore) return 0;
  if (!args.within(label, p.classes)) return std::numeric_limits<Wide<T>>::quiet_NaN();
  const i64 at = label - p.first;
  return at >= 0 && at < p.n ? Wide<T>(x[at * p.x]) : 0;
}

// `log_sum` of one row, given its first element.
template <class T, class LogSum>
void for_rows(const Plan& p, const Args& args, const LogSum& log_sum) {
  using W = Wide<T>;
  W *const sums = args.output<W>(0), *const labels = args.output<W>(1);
  Pauses pauses(args);
  run_nest(p.rows, [&](Steps at) {
    pauses.after(p.n);
    const T* x = args.input<T>(0) + at[0];
    if (sums) sums[at[2]] = W(log_sum(x));
    if (labels) labels[at[3]] = logit_of(p, args, x, args.input<std::int32_t>(1)[at[1]]);
  });
  p.log_sums.clear(sums);
  p.labels.clear(labels);
}

bool accepts_rows(const Call& call) { return plan_of(call).x == 1; }

Runner prepare_rows(const Call& call) {
  return with_stored(call.in[0].dtype, [&]<class T>() -> Runner {
    return [p = plan_of(call)](const Args& args) {
      for_rows<T>(p, args, [&](const T* x) {
        const Wide<T> top = lane_max<T>(p.n, x);
        return double(top) + std::log(double(exp_row<T>(x, nullptr, p.n, top)));
      });
    };
  });
}

Runner prepare_reference(const Call& call) {
  return with_stored(call.in[0].dtype, [&]<class T>() -> Runner {
    return [p = plan_of(call)](const Args& args) {
      for_rows<T>(p, args, [&](const T* x) {
        double top = -std::numeric_limits<double>::infinity(), sum = 0;
        for (i64 i = 0; i < p.n; ++i) top = std::max(top, double(x[i * p.x]));
        for (i64 i = 0; i < p.n; ++i) sum += std::exp(double(x[i * p.x]) - top);
        return top + std::log(sum);
      });
    };
  });
}

constexpr Kernel kernels[] = {{.name = "rows", .accepts = &accepts_rows, .prepare = &prepare_rows},
                              {.name = "reference", .prepare = &prepare_reference}};

}  // namespace

std::span<const Kernel> part_entropy_kernels() { return kernels; }

}  // namespace stretto
