#include "stretto/ops/constant.h"

#include "stretto/base/bf16.h"
#include "stretto/kernels/kernel.h"

namespace stretto {
namespace {

Runner prepare(const Call& call) {
  const ConstantAttrs a = call.attrs<ConstantAttrs>();
  return [a](const Args& args) {
    if (a.dtype == f32)
      *args.output<float>() = float(a.value);
    else if (a.dtype == f64)
      *args.output<double>() = a.value;
    else if (a.dtype == bf16)
      *args.output<BF16>() = BF16(a.value);
    else
      *args.output<std::int32_t>() = std::int32_t(a.value);
  };
}

constexpr Kernel kernels[] = {{.name = "constant", .prepare = &prepare}};

}  // namespace

std::span<const Kernel> constant_kernels() { return kernels; }

}  // namespace stretto
