// The first operand's elements in order; what is not zero is multiplied along the dims that it lacks.
#include "stretto/ops/triple.h"

#include "stretto/kernels/cpu/padding.h"
#include "stretto/kernels/cpu/place.h"
#include "stretto/kernels/cpu/with_float.h"

namespace stretto {
namespace {

struct TriplePlan {
  Nest first;  // arrays: the operands and the result
  Nest rest;   // arrays: second, third, result
  Loop along{};
  View out;
};

TriplePlan triple_plan_of(const Call& call) {
  const View &a = call.in[0], &b = call.in[1], &c = call.in[2], &out = call.out[0];
  TriplePlan p{.first = valid_nest(a.dims, {&a, &b, &c, &out}),
               .rest = valid_nest(without(joined(b.dims, c.dims), a.dims), {&b, &c, &out}),
               .out = out};
  p.along = take_innermost(p.rest);
  return p;
}

template <class T>
void run_triple(const TriplePlan& p, const Args& args) {
  const T *a = args.input<T>(0), *b = args.input<T>(1), *c = args.input<T>(2);
  T* out = args.output<T>();
  fill_zero(p.out, args.out[0]);
  const Loop l = p.along;
  run_nest(p.first, [&](Steps at) {
    const T factor = a[at[0]];
    if (factor == T(0)) return;
    run_nest(p.rest, [&](Steps in) {
      const T *x = b + at[1] + in[0], *y = c + at[2] + in[1];
      T* to = out + at[3] + in[2];
      if (l.step[2] == 0) {
        T sum = 0;
        for (i64 i = 0; i < l.size; ++i) sum += x[i * l.step[0]] * y[i * l.step[1]];
        *to += factor * sum;
      } else if (l.step[0] == 0 && l.step[1] == 1 && l.step[2] == 1) {
        const T scale = factor * *x;
#pragma GCC ivdep
        for (i64 i = 0; i < l.size; ++i) to[i] += scale * y[i];
      } else {
        for (i64 i = 0; i < l.size; ++i) to[i * l.step[2]] += factor * x[i * l.step[0]] * y[i * l.step[1]];
      }
    });
  });
}

Runner prepare_triple(const Call& call) {
  return with_float(call.out[0].dtype, [&]<class T>() -> Runner {
    return [p = triple_plan_of(call)](const Args& args) { run_triple<T>(p, args); };
  });
}

constexpr Kernel triple_table[] = {{.name = "plain", .prepare = &prepare_triple}};

}  // namespace

std::span<const Kernel> triple_kernels() { return triple_table; }

}  // namespace stretto
