// Sums accumulate in f64 whatever the type, in an order that depends on shapes only.
#include "stretto/ops/sum.h"

#include <algorithm>

#include "stretto/kernels/cpu/nest.h"
#include "stretto/kernels/kernel.h"

namespace stretto {
namespace {

struct Plan {
  Nest kept, reduced;  // arrays: operand, result
  bool accumulate = false;
};

Plan plan_of(const Call& call) {
  const View &x = call.in[0], &out = call.out[0];
  Plan plan{.accumulate = call.accumulate};
  for (DimId d : x.dims) {
    if (contains(call.attrs<SumAttrs>().over, d))
      add_loop(plan.reduced, x.valid(d), {x.stride(d), 0});
    else
      add_loop(plan.kept, x.size(d), {x.stride(d), out.stride(d)});
  }
  return plan;
}

template <class T>
void put(T* to, double value, bool add) {
  *to = T(add ? double(*to) + value : value);
}

template <class T>
void plain(const Plan& plan, const Args& args) {
  const bool add = plan.accumulate && !args.now.overwrite;
  const T* x = args.input<T>(0);
  run_nest(plan.kept, [&](Steps at) {
    double total = 0;
    run_nest(plan.reduced, [&](Steps in) { total += double(x[at[0] + in[0]]); });
    put(args.output<T>() + at[1], total, add);
  });
}

// The innermost reduced loop is contiguous: 16 running sums over it, added up as a tree.
template <class T>
void rows(const Plan& plan, const Args& args) {
  const bool add = plan.accumulate && !args.now.overwrite;
  Nest outer = plan.reduced;
  const i64 n = take_innermost(outer).size;
  run_nest(plan.kept, [&](Steps at) {
    double lanes[16] = {};
    run_nest(outer, [&](Steps in) {
      const T* x = args.input<T>(0) + at[0] + in[0];
      i64 i = 0;
      for (; i + 16 <= n; i += 16)
        for (int k = 0; k < 16; ++k) lanes[k] += double(x[i + k]);
      for (int k = 0; i + k < n; ++k) lanes[k] += double(x[i + k]);
    });
    for (int width = 8; width > 0; width /= 2)
      for (int k = 0; k < width; ++k) lanes[k] += lanes[k + width];
    put(args.output<T>() + at[1], lanes[0], add);
  });
}

// The innermost kept loop is contiguous in operand and result: a block of columns at a time, four rows at once.
template <class T>
void columns(const Plan& plan, const Args& args) {
  constexpr i64 block = 512;
  const bool add = plan.accumulate && !args.now.overwrite;
  Nest outer_kept = plan.kept, outer_reduced = plan.reduced;
  const i64 width = take_innermost(outer_kept).size;
  const Loop deep = take_innermost(outer_reduced);
  const i64 pitch = deep.step[0];
  alignas(64) double total[block];
  run_nest(outer_kept, [&](Steps at) {
    for (i64 begin = 0; begin < width; begin += block) {
      const i64 n = std::min(block, width - begin);
      std::fill_n(total, n, 0.0);
      run_nest(outer_reduced, [&](Steps in) {
        const T* x = args.input<T>(0) + at[0] + in[0] + begin;
        i64 r = 0;
        for (; r + 4 <= deep.size; r += 4) {
          const T *x0 = x + r * pitch, *x1 = x0 + pitch, *x2 = x1 + pitch, *x3 = x2 + pitch;
          for (i64 i = 0; i < n; ++i) total[i] += (double(x0[i]) + double(x1[i])) + (double(x2[i]) + double(x3[i]));
        }
        for (; r < deep.size; ++r)
          for (i64 i = 0; i < n; ++i) total[i] += double(x[r * pitch + i]);
      });
      T* out = args.output<T>() + at[1] + begin;
      for (i64 i = 0; i < n; ++i) put(out + i, total[i], add);
    }
  });
}

template <auto in_f32, auto in_f64, auto in_i32>
Runner by_type(const Call& call) {
  const DType type = call.in[0].dtype;
  const auto run = type == f32 ? in_f32 : type == f64 ? in_f64 : in_i32;
  return [plan = plan_of(call), run](const Args& args) { run(plan, args); };
}

bool inner_is_reduced(const Call& call) {
  Plan plan = plan_of(call);
  return take_innermost(plan.reduced).step[0] == 1;
}
bool inner_is_kept(const Call& call) {
  Plan plan = plan_of(call);
  const Loop inner = take_innermost(plan.kept);
  return inner.step[0] == 1 && inner.step[1] == 1;
}

constexpr Kernel kernels[] = {
    {.name = "rows",
     .accepts = &inner_is_reduced,
     .prepare = &by_type<&rows<float>, &rows<double>, &rows<std::int32_t>>},
    {.name = "columns",
     .accepts = &inner_is_kept,
     .prepare = &by_type<&columns<float>, &columns<double>, &columns<std::int32_t>>},
    {.name = "plain", .prepare = &by_type<&plain<float>, &plain<double>, &plain<std::int32_t>>},
};

}  // namespace

std::span<const Kernel> sum_kernels() { return kernels; }

}  // namespace stretto
