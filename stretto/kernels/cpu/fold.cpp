#include "stretto/ops/fold.h"

#include "stretto/kernels/cpu/nest.h"
#include "stretto/kernels/cpu/with_float.h"
#include "stretto/kernels/kernel.h"

namespace stretto {
namespace {

// Of every element along the whole the elements of the operand that meet there, in the order of its dims.
struct Meeting {
  std::vector<i64> first;    // of each, and one more: where its list begins
  std::vector<i64> offsets;  // in the operand
  Nest rest;                 // the other dims; arrays: operand, result
  i64 step = 1;              // along the whole, in the result

  explicit Meeting(const Call& call) {
    const FoldAttrs& a = call.attrs<FoldAttrs>();
    const View &x = call.in[0], &y = call.out[0];
    std::vector<std::vector<i64>> there(std::size_t(y.size(a.whole)));
    Nest parts;  // arrays: operand, the place along the whole
    for (std::size_t i = 0; i < a.parts.size(); ++i)
      add_loop(parts, x.size(a.parts[i]), {x.stride(a.parts[i]), a.steps[i]});
    run_nest(parts, [&](Steps at) { there[std::size_t(a.start + at[1])].push_back(at[0]); });
    for (const std::vector<i64>& list : there) {
      first.push_back(std::ssize(offsets));
      offsets.insert(offsets.end(), list.begin(), list.end());
    }
    first.push_back(std::ssize(offsets));
    for (DimId d : y.dims)
      if (d != a.whole) add_loop(rest, y.size(d), {x.stride(d), y.stride(d)});
    step = y.stride(a.whole);
  }
};

template <class T>
void add_up(const Meeting& m, const T* x, T* y, bool adds) {
  run_nest(m.rest, [&](Steps at) {
    for (std::size_t p = 0; p + 1 < m.first.size(); ++p) {
      T& to = y[at[1] + i64(p) * m.step];
      Wide<T> sum = adds ? Wide<T>(to) : 0;
      for (i64 i = m.first[p]; i < m.first[p + 1]; ++i) sum += x[at[0] + m.offsets[std::size_t(i)]];
      to = T(sum);
    }
  });
}

template <class T>
Runner runner(const Call& call) {
  return [m = Meeting(call), accumulate = call.accumulate](const Args& args) {
    add_up(m, args.input<T>(0), args.output<T>(), accumulate && !args.now.overwrite);
  };
}

Runner prepare(const Call& call) {
  if (call.out[0].dtype == i32) return runner<std::int32_t>(call);
  return with_stored(call.out[0].dtype, [&]<class T>() { return runner<T>(call); });
}
constexpr Kernel kernels[] = {{.name = "plain", .prepare = &prepare}};

}  // namespace

std::span<const Kernel> fold_kernels() { return kernels; }

}  // namespace stretto
