// Both directions walk over the places in the order of tokens and their choices: so sums have one order, too.
#include "stretto/ops/dispatch.h"

#include <cstring>
#include <limits>

#include "stretto/kernels/cpu/place.h"
#include "stretto/kernels/cpu/row_sums.h"
#include "stretto/kernels/cpu/with_float.h"

namespace stretto {
namespace {

struct Plan {
  Nest tokens;  // arrays: the tokens' array, places
  Nest rest;    // of a row, without its innermost loop; arrays: tokens', rows'
  Loop inner;
  i64 rows = 0, step = 0;  // of the rows' array
  View out;
  Padding padding;

  Plan(const Call& call, const View& of_tokens, const View& of_rows, DimId row)
      : rest(valid_nest(without(of_rows.dims, {row}), {&of_tokens, &of_rows})),
        inner(take_innermost(rest)),
        rows(of_rows.size(row)),
        step(of_rows.stride(row)),
        out(call.out[0]),
        padding(out) {
    for (DimId d : call.in[1].dims) add_loop(tokens, call.in[1].valid(d), {of_tokens.stride(d), call.in[1].stride(d)});
  }
  bool dense() const { return inner.size == 1 || (inner.step[0] == 1 && inner.step[1] == 1); }
};

template <class T>
void run_dispatch(const Plan& p, const Args& args) {
  const std::int32_t* places = args.input<std::int32_t>(1);
  i64 named = 0;
  run_nest(p.tokens, [&](Steps at) { named += places[at[1]] >= 0; });
  if (named < p.rows) fill_zero(p.out, args.out[0]);
  const bool dense = p.dense();
  run_nest(p.tokens, [&](Steps at) {
    if (places[at[1]] < 0) return;
    run_nest(p.rest, [&](Steps lane) {
      const T* from = args.input<T>(0) + at[0] + lane[0];
      T* to = args.output<T>() + places[at[1]] * p.step + lane[1];
      if (dense) return void(std::memcpy(to, from, p.inner.size * sizeof(T)));
      for (i64 i = 0; i < p.inner.size; ++i) to[i * p.inner.step[1]] = from[i * p.inner.step[0]];
    });
  });
  p.padding.clear(args.output<T>());
}

Runner prepare_dispatch(const Call& call) {
  return with_stored(call.out[0].dtype, [&]<class T>() -> Runner {
    return [p = Plan(call, call.in[0], call.out[0], call.attrs<DispatchAttrs>().rows)](const Args& args) {
      run_dispatch<T>(p, args);
    };
  });
}

// A row that is lost makes a sum that is no number.
Runner prepare_combine(const Call& call) {
  return with_stored(call.out[0].dtype, [&]<class T>() -> Runner {
    const DimId rows = call.attrs<CombineAttrs>().rows;
    return [sums = RowSums(call.out[0], call.in[1], call.in[0], {rows}),
            step = call.in[0].stride(rows)](const Args& args) {
      const std::int32_t* places = args.input<std::int32_t>(1);
      constexpr Wide<T> lost = std::numeric_limits<Wide<T>>::quiet_NaN();
      sum_rows(sums, args.input<T>(0), args.output<T>(), lost,
               [&](i64 at) { return places[at] >= 0 ? std::optional(places[at] * step) : std::nullopt; });
    };
  });
}

constexpr Kernel dispatching[] = {{.name = "plain", .prepare = &prepare_dispatch}};
constexpr Kernel combining[] = {{.name = "plain", .prepare = &prepare_combine}};

}  // namespace

std::span<const Kernel> dispatch_kernels() { return dispatching; }
std::span<const Kernel> combine_kernels() { return combining; }

}  // namespace stretto
