#include "stretto/ops/slots.h"

#include <algorithm>

#include "stretto/kernels/cpu/padding.h"
#include "stretto/kernels/cpu/place.h"
#include "stretto/kernels/cpu/with_float.h"

namespace stretto {
namespace {

struct Plan {
  Nest sequences;  // arrays: gates, chosen, taken
  i64 tokens = 0, experts = 0, capacity = 0, k = 1;
  Steps token{}, expert{};
  i64 slot = 0;  // of taken
  View chosen, taken;
};

Plan plan_of(const Call& call) {
  const SlotsAttrs& a = call.attrs<SlotsAttrs>();
  const View &x = call.in[0], &y = call.out[0], &z = call.out[1];
  return {.sequences = valid_nest(without(x.dims, {a.token, a.expert}), {&x, &y, &z}),
          .tokens = x.valid(a.token),
          .experts = x.valid(a.expert),
          .capacity = z.valid(a.capacity),
          .k = a.k,
          .token = {x.stride(a.token), y.stride(a.token), z.stride(a.token)},
          .expert = {x.stride(a.expert), y.stride(a.expert), z.stride(a.expert)},
          .slot = z.stride(a.capacity),
          .chosen = y,
          .taken = z};
}

// A token's choices are few: the largest of what is left, k times. `order`: slots in use, then the choices.
template <class T>
void run(const Plan& p, std::vector<i64>& order, const Args& args) {
  T *const chosen = args.output<T>(0), *const taken = args.output<T>(1);
  if (chosen) fill_zero(p.chosen, args.out[0]);
  if (taken) fill_zero(p.taken, args.out[1]);
  run_nest(p.sequences, [&](Steps at) {
    std::fill(order.begin(), order.end(), 0);
    for (i64 t = 0; t < p.tokens; ++t) {
      const T* gates = args.input<T>(0) + at[0] + t * p.token[0];
      i64* picked = order.data() + p.experts;
      for (i64 j = 0; j < p.k; ++j) {
        i64 best = -1;
        for (i64 e = 0; e < p.experts; ++e) {
          if (std::find(picked, picked + j, e) != picked + j) continue;
          if (best < 0 || gates[e * p.expert[0]] > gates[best * p.expert[0]]) best = e;
        }
        picked[j] = best;
        if (chosen) chosen[at[1] + t * p.token[1] + best * p.expert[1]] = T(1);
        const i64 slot = order[std::size_t(best)]++;
        if (taken && slot < p.capacity) taken[at[2] + t * p.token[2] + best * p.expert[2] + slot * p.slot] = T(1);
      }
    }
  });
}

Runner prepare(const Call& call) {
  return with_float(call.in[0].dtype, [&]<class T>() -> Runner {
    const Plan p = plan_of(call);
    return [p, order = std::vector<i64>(std::size_t(p.experts + p.k))](const Args& args) mutable {
      run<T>(p, order, args);
    };
  });
}

constexpr Kernel kernels[] = {{.name = "plain", .prepare = &prepare}};

}  // namespace

std::span<const Kernel> slots_kernels() { return kernels; }

}  // namespace stretto
