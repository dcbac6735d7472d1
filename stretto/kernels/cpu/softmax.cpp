#include "stretto/ops/softmax.h"

#include <cmath>

#include "stretto/kernels/cpu/exp_row.h"
#include "stretto/kernels/cpu/padding.h"
#include "stretto/kernels/cpu/with_float.h"

namespace stretto {
namespace {

struct Plan {
  Nest rows;  // arrays: x, y
  i64 n = 0, x = 1, y = 1;
  Padding padding;
};

Plan plan_of(const Call& call) {
  const View &x = call.in[0], &y = call.out[0];
  const DimId over = call.attrs<SoftmaxAttrs>().over;
  return {.rows = valid_nest(without(x.dims, {over}), {&x, &y}),
          .n = x.valid(over),
          .x = x.stride(over),
          .y = y.stride(over),
          .padding = Padding(y)};
}

bool accepts_rows(const Call& call) {
  const Plan p = plan_of(call);
  return p.x == 1 && p.y == 1;
}

Runner prepare_rows(const Call& call) {
  return with_stored(call.out[0].dtype, [&]<class T>() -> Runner {
    return [p = plan_of(call)](const Args& args) {
      run_nest(p.rows, [&](Steps at) {
        const T* x = args.input<T>(0) + at[0];
        T* y = args.output<T>() + at[1];
        const Wide<T> top = lane_max<T>(p.n, x);
        if constexpr (stored_wide<T>) {
          const T factor = 1 / exp_row(x, y, p.n, top);
#pragma GCC ivdep
          for (i64 i = 0; i < p.n; ++i) y[i] *= factor;
        } else {
          scaled_exp_row(x, y, p.n, top, 1 / exp_row(x, nullptr, p.n, top));
        }
      });
      p.padding.clear(args.output<T>());
    };
  });
}

Runner prepare_reference(const Call& call) {
  return with_stored(call.out[0].dtype, [&]<class T>() -> Runner {
    return [p = plan_of(call)](const Args& args) {
      run_nest(p.rows, [&](Steps at) {
        const auto x = [&](i64 i) { return double(args.input<T>(0)[at[0] + i * p.x]); };
        double top = -std::numeric_limits<double>::infinity(), sum = 0;
        for (i64 i = 0; i < p.n; ++i) top = std::max(top, x(i));
        for (i64 i = 0; i < p.n; ++i) sum += std::exp(x(i) - top);
        for (i64 i = 0; i < p.n; ++i) args.output<T>()[at[1] + i * p.y] = T(std::exp(x(i) - top) / sum);
      });
      p.padding.clear(args.output<T>());
    };
  });
}

constexpr Kernel kernels[] = {{.name = "rows", .accepts = &accepts_rows, .prepare = &prepare_rows},
                              {.name = "reference", .prepare = &prepare_reference}};

}  // namespace

std::span<const Kernel> softmax_kernels() { return kernels; }

}  // namespace stretto
