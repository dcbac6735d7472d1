// The loops that reductions over dims share. The order in which elements are joined depends on shapes only.
//
//   struct Max {
//     template <class T> using Running = T;                        // the type of the intermediate result
//     template <class T> static T start();                         // joined with anything it changes nothing
//     template <class T> static T join(T a, T b);
//     static const DimSet& over(const Call& c) { return c.attrs<MaxAttrs>().over; }
//   };
//   std::span<const Kernel> max_kernels() { return reduce_kernels<Max>; }
#pragma once
#include <algorithm>

#include "stretto/base/bf16.h"
#include "stretto/kernels/cpu/nest.h"
#include "stretto/kernels/cpu/pauses.h"

namespace stretto {

struct ReducePlan {
  Nest kept, reduced;  // arrays: operand, result
  bool accumulate = false;
};

template <class Policy>
ReducePlan reduce_plan(const Call& call) {
  const View &x = call.in[0], &out = call.out[0];
  ReducePlan plan{.kept = {}, .reduced = {}, .accumulate = call.accumulate};
  for (DimId d : x.dims) {
    if (contains(Policy::over(call), d))
      add_loop(plan.reduced, x.valid(d), {x.stride(d), 0});
    else
      add_loop(plan.kept, x.size(d), {x.stride(d), out.stride(d)});
  }
  return plan;
}

// T: the operand's elements, O: the result's.
template <class Policy, class T, class O = T>
struct Reduction {
  using R = typename Policy::template Running<Wide<T>>;
  static R join(R a, R b) { return Policy::template join<R>(a, b); }
  static R start() { return Policy::template start<R>(); }
  static void put(O* to, R value, bool add) { *to = O(add ? join(R(*to), value) : value); }

  static void plain(const ReducePlan& plan, const Args& args) {
    const bool add = plan.accumulate && !args.now.overwrite;
    const T* x = args.input<T>(0);
    run_nest(plan.kept, [&](Steps at) {
      R total = start();
      run_nest(plan.reduced, [&](Steps in) { total = join(total, R(x[at[0] + in[0]])); });
      put(args.output<O>() + at[1], total, add);
    });
  }

  // The innermost reduced loop is contiguous: 16 running results over it, joined as a tree.
  static void rows(const ReducePlan& plan, const Args& args) {
    const bool add = plan.accumulate && !args.now.overwrite;
    Nest outer = plan.reduced;
    const i64 n = take_innermost(outer).size;
    run_nest(plan.kept, [&](Steps at) {
      R lanes[16];
      std::fill_n(lanes, 16, start());
      run_nest(outer, [&](Steps in) {
        const T* x = args.input<T>(0) + at[0] + in[0];
        i64 i = 0;
        for (; i + 16 <= n; i += 16)
          for (int k = 0; k < 16; ++k) lanes[k] = join(lanes[k], R(x[i + k]));
        for (int k = 0; i + k < n; ++k) lanes[k] = join(lanes[k], R(x[i + k]));
      });
      for (int width = 8; width > 0; width /= 2)
        for (int k = 0; k < width; ++k) lanes[k] = join(lanes[k], lanes[k + width]);
      put(args.output<O>() + at[1], lanes[0], add);
    });
  }

  // The innermost kept loop is contiguous in operand and result: a block of columns at a time, four rows at once.
  static void columns(const ReducePlan& plan, const Args& args) {
    constexpr i64 block = 512;
    const bool add = plan.accumulate && !args.now.overwrite;
    Nest outer_kept = plan.kept, outer_reduced = plan.reduced;
    const i64 width = take_innermost(outer_kept).size;
    const Loop deep = take_innermost(outer_reduced);
    const i64 pitch = deep.step[0];
    alignas(64) R total[block];
    Pauses pauses(args);
    run_nest(outer_kept, [&](Steps at) {
      for (i64 begin = 0; begin < width; begin += block) {
        const i64 n = std::min(block, width - begin);
        std::fill_n(total, n, start());
        run_nest(outer_reduced, [&](Steps in) {
          const T* x = args.input<T>(0) + at[0] + in[0] + begin;
          pauses.after(n * deep.size);
          i64 r = 0;
          for (; r + 4 <= deep.size; r += 4) {
            const T *x0 = x + r * pitch, *x1 = x0 + pitch, *x2 = x1 + pitch, *x3 = x2 + pitch;
            for (i64 i = 0; i < n; ++i)
              total[i] = join(total[i], join(join(R(x0[i]), R(x1[i])), join(R(x2[i]), R(x3[i]))));
          }
          for (; r < deep.size; ++r)
            for (i64 i = 0; i < n; ++i) total[i] = join(total[i], R(x[r * pitch + i]));
        });
        O* out = args.output<O>() + at[1] + begin;
        for (i64 i = 0; i < n; ++i) put(out + i, total[i], add);
      }
    });
  }
};

template <class Policy, auto in_f32, auto in_f64, auto in_i32, auto in_bf16, auto widened>
Runner prepare_reduce(const Call& call) {
  const DType type = call.in[0].dtype;
  const auto narrow = call.out[0].dtype == bf16 ? in_bf16 : widened;
  const auto run = type == f32 ? in_f32 : type == f64 ? in_f64 : type == i32 ? in_i32 : narrow;
  return [plan = reduce_plan<Policy>(call), run](const Args& args) { run(plan, args); };
}
template <class Policy>
bool inner_is_reduced(const Call& call) {
  ReducePlan plan = reduce_plan<Policy>(call);
  return take_innermost(plan.reduced).step[0] == 1;
}
template <class Policy>
bool inner_is_kept(const Call& call) {
  ReducePlan plan = reduce_plan<Policy>(call);
  const Loop inner = take_innermost(plan.kept);
  return inner.step[0] == 1 && inner.step[1] == 1;
}

template <class Policy, class F = Reduction<Policy, float>, class D = Reduction<Policy, double>,
          class I = Reduction<Policy, std::int32_t>, class H = Reduction<Policy, BF16>,
          class W = Reduction<Policy, BF16, float>>
inline constexpr Kernel reduce_kernels[] = {
    {.name = "rows",
     .accepts = &inner_is_reduced<Policy>,
     .prepare = &prepare_reduce<Policy, &F::rows, &D::rows, &I::rows, &H::rows, &W::rows>},
    {.name = "columns",
     .accepts = &inner_is_kept<Policy>,
     .prepare = &prepare_reduce<Policy, &F::columns, &D::columns, &I::columns, &H::columns, &W::columns>},
    {.name = "plain", .prepare = &prepare_reduce<Policy, &F::plain, &D::plain, &I::plain, &H::plain, &W::plain>},
};

}  // namespace stretto
