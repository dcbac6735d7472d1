// Per row the best so far, in order; a later one comes before those that are smaller.
#include "stretto/ops/top_k.h"

#include "stretto/kernels/cpu/padding.h"
#include "stretto/kernels/cpu/with_float.h"

namespace stretto {
namespace {

struct Plan {
  Nest rows;  // arrays: x, result
  i64 n = 0, k = 0, step = 0, out = 0;
  Padding padding;
};

template <class T>
void run(const Plan& p, const Args& args) {
  run_nest(p.rows, [&](Steps at) {
    const T* x = args.input<T>(0) + at[0];
    std::int32_t* best = args.output<std::int32_t>() + at[1];
    i64 found = 0;
    for (std::int32_t e = 0; e < p.n; ++e) {
      i64 j = found;
      while (j > 0 && x[e * p.step] > x[best[(j - 1) * p.out] * p.step]) --j;
      if (j == p.k) continue;
      found = std::min(found + 1, p.k);
      for (i64 i = found - 1; i > j; --i) best[i * p.out] = best[(i - 1) * p.out];
      best[j * p.out] = e;
    }
  });
  p.padding.clear(args.output<std::int32_t>());
}

Runner prepare(const Call& call) {
  return with_stored(call.in[0].dtype, [&]<class T>() -> Runner {
    const TopKAttrs& a = call.attrs<TopKAttrs>();
    const View &x = call.in[0], &y = call.out[0];
    return [p = Plan{.rows = valid_nest(without(x.dims, {a.over}), {&x, &y}),
                     .n = x.valid(a.over),
                     .k = y.size(a.choice),
                     .step = x.stride(a.over),
                     .out = y.stride(a.choice),
                     .padding = Padding(y)}](const Args& args) { run<T>(p, args); };
  });
}

constexpr Kernel kernels[] = {{.name = "plain", .prepare = &prepare}};

}  // namespace

std::span<const Kernel> top_k_kernels() { return kernels; }

}  // namespace stretto
