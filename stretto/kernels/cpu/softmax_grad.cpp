#include "stretto/ops/softmax_grad.h"

#include "stretto/kernels/cpu/lanes.h"
#include "stretto/kernels/cpu/padding.h"
#include "stretto/kernels/cpu/with_float.h"

namespace stretto {
namespace {

struct Plan {
  Nest rows;  // arrays: y, g, dx
  i64 n = 0, y = 1, g = 1, dx = 1;
  Padding padding;
};

Plan plan_of(const Call& call) {
  const View &y = call.in[0], &g = call.in[1], &dx = call.out[0];
  const DimId over = call.attrs<SoftmaxGradAttrs>().over;
  return {.rows = valid_nest(without(y.dims, {over}), {&y, &g, &dx}),
          .n = y.valid(over),
          .y = y.stride(over),
          .g = g.stride(over),
          .dx = dx.stride(over),
          .padding = Padding(dx)};
}

bool accepts_rows(const Call& call) {
  const Plan p = plan_of(call);
  return p.y == 1 && p.g == 1 && p.dx == 1;
}

Runner prepare_rows(const Call& call) {
  return with_stored(call.out[0].dtype, [&]<class T>() -> Runner {
    return [p = plan_of(call)](const Args& args) {
      run_nest(p.rows, [&](Steps at) {
        const T *y = args.input<T>(0) + at[0], *g = args.input<T>(1) + at[1];
        T* dx = args.output<T>() + at[2];
        const Wide<T> dot = lane_sum<Wide<T>>(
            p.n, [](auto a, auto b) { return a * b; }, y, g);
#pragma GCC ivdep
        for (i64 i = 0; i < p.n; ++i) dx[i] = T(y[i] * (g[i] - dot));
      });
      p.padding.clear(args.output<T>());
    };
  });
}

Runner prepare_reference(const Call& call) {
  return with_stored(call.out[0].dtype, [&]<class T>() -> Runner {
    return [p = plan_of(call)](const Args& args) {
      run_nest(p.rows, [&](Steps at) {
        const auto y = [&](i64 i) { return double(args.input<T>(0)[at[0] + i * p.y]); };
        const auto g = [&](i64 i) { return double(args.input<T>(1)[at[1] + i * p.g]); };
        double dot = 0;
        for (i64 i = 0; i < p.n; ++i) dot += y(i) * g(i);
        for (i64 i = 0; i < p.n; ++i) args.output<T>()[at[2] + i * p.dx] = T(y(i) * (g(i) - dot));
      });
      p.padding.clear(args.output<T>());
    };
  });
}

constexpr Kernel kernels[] = {{.name = "rows", .accepts = &accepts_rows, .prepare = &prepare_rows},
                              {.name = "reference", .prepare = &prepare_reference}};

}  // namespace

std::span<const Kernel> softmax_grad_kernels() { return kernels; }

}  // namespace stretto
