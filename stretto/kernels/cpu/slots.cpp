#include "stretto/ops/slots.h"

#include <algorithm>

#include "stretto/kernels/cpu/padding.h"

namespace stretto {
namespace {

struct Plan {
  Nest sequences;  // arrays: which, places
  i64 tokens = 0, choices = 0;
  SlotsAttrs attrs;
  Steps token{}, choice{};
  Padding padding;
};

Plan plan_of(const Call& call) {
  const SlotsAttrs& a = call.attrs<SlotsAttrs>();
  const View &x = call.in[0], &y = call.out[0];
  return {.sequences = valid_nest(without(x.dims, {a.token, a.choice}), {&x, &y}),
          .tokens = x.valid(a.token),
          .choices = x.valid(a.choice),
          .attrs = a,
          .token = {x.stride(a.token), y.stride(a.token)},
          .choice = {x.stride(a.choice), y.stride(a.choice)},
          .padding = Padding(y)};
}

// `used`: slots of every expert that are taken. Whoever names no expert has no place either.
void run(const Plan& p, std::vector<i64>& used, const Args& args) {
  const i64 slots = p.attrs.slots;
  run_nest(p.sequences, [&](Steps at) {
    std::fill(used.begin(), used.end(), 0);
    for (i64 t = 0; t < p.tokens; ++t)
      for (i64 j = 0; j < p.choices; ++j) {
        const i64 expert = args.input<std::int32_t>(0)[at[0] + t * p.token[0] + j * p.choice[0]];
        const bool fits = expert >= 0 && expert < p.attrs.experts && used[expert] < slots;
        args.output<std::int32_t>()[at[1] + t * p.token[1] + j * p.choice[1]] =
            static_cast<std::int32_t>(fits ? expert * slots + used[expert]++ : -1);
      }
  });
  p.padding.clear(args.output<std::int32_t>());
}

Runner prepare(const Call& call) {
  return [p = plan_of(call), used = std::vector<i64>(std::size_t(call.attrs<SlotsAttrs>().experts))](
             const Args& args) mutable { run(p, used, args); };
}

constexpr Kernel kernels[] = {{.name = "plain", .prepare = &prepare}};

}  // namespace

std::span<const Kernel> slots_kernels() { return kernels; }

}  // namespace stretto
