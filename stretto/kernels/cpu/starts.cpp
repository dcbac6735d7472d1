#include "stretto/kernels/cpu/padding.h"
#include "stretto/ops/attention.h"

namespace stretto {
namespace {

Runner prepare(const Call& call) {
  const DimId along = call.attrs<StartsAttrs>().along;
  const View &x = call.in[0], &y = call.out[0];
  return [rows = valid_nest(without(x.dims, {along}), {&x, &y}), n = x.valid(along), from = x.stride(along),
          to = y.stride(along), padding = Padding(y)](const Args& args) {
    run_nest(rows, [&](Steps at) {
      const std::int32_t* ids = args.input<std::int32_t>(0) + at[0];
      std::int32_t first = 0;
      for (std::int32_t i = 0; i < n; ++i) {
        if (i > 0 && ids[i * from] != ids[(i - 1) * from]) first = i;
        args.output<std::int32_t>()[at[1] + i * to] = first;
      }
    });
    padding.clear(args.output<std::int32_t>());
  };
}

constexpr Kernel kernels[] = {{.name = "plain", .prepare = &prepare}};

}  // namespace

std::span<const Kernel> starts_kernels() { return kernels; }

}  // namespace stretto
