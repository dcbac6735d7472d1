#include "stretto/kernels/cpu/lanes.h"
#include "stretto/kernels/cpu/padding.h"
#include "stretto/kernels/cpu/with_float.h"

namespace stretto {
namespace {

Nest valid_elements(const Call& call) { return valid_nest(call.in[0].dims, {&call.in[0]}); }

bool accepts_rows(const Call& call) {
  Nest nest = valid_elements(call);
  return take_innermost(nest).step[0] == 1;
}

// The innermost loop is contiguous.
Runner prepare_rows(const Call& call) {
  return with_stored(call.in[0].dtype, [&]<class T>() -> Runner {
    Nest rows = valid_elements(call);
    const i64 n = take_innermost(rows).size;
    return [rows, n](const Args& args) {
      double total = 0;
      run_nest(rows, [&](Steps at) {
        const T* x = args.input<T>(0) + at[0];
        total += lane_sum<double>(
            n, [](auto v) { return v * v; }, x);
      });
      *args.output<double>() = total;
    };
  });
}

Runner prepare_reference(const Call& call) {
  return with_stored(call.in[0].dtype, [&]<class T>() -> Runner {
    return [nest = valid_elements(call)](const Args& args) {
      double total = 0;
      run_nest(nest, [&](Steps at) {
        const double x = double(args.input<T>(0)[at[0]]);
        total += x * x;
      });
      *args.output<double>() = total;
    };
  });
}

constexpr Kernel kernels[] = {{.name = "rows", .accepts = &accepts_rows, .prepare = &prepare_rows},
                              {.name = "reference", .prepare = &prepare_reference}};

}  // namespace

std::span<const Kernel> squared_norm_kernels() { return kernels; }

}  // namespace stretto
