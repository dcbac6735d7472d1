#include "stretto/kernels/kernel.h"

#include <map>

#include "stretto/kernels/cpu/pointwise/pointwise.h"

namespace stretto {

#define KERNELS(op) std::span<const Kernel> op##_kernels();
#define POINTWISE(op) Tile op##_tile(std::span<const DType> in, DType out);
#include "stretto/kernels/cpu/kernels.def"
#undef KERNELS
#undef POINTWISE
#define KERNELS(op) extern const Op op##_op;
#define POINTWISE(op) extern const Op op##_op;
#include "stretto/kernels/cpu/kernels.def"
#undef KERNELS
#undef POINTWISE

namespace {
struct Entry {
  std::span<const Kernel> kernels;
  Tile (*tile)(std::span<const DType>, DType) = nullptr;
};
const std::map<const Op*, Entry>& table() {
  static const std::map<const Op*, Entry> t = [] {
    std::map<const Op*, Entry> m;
#define KERNELS(op) m[&op##_op].kernels = op##_kernels();
#define POINTWISE(op) m[&op##_op] = {pointwise_kernels(), &op##_tile};
#include "stretto/kernels/cpu/kernels.def"
#undef KERNELS
#undef POINTWISE
    return m;
  }();
  return t;
}
}  // namespace

std::span<const Kernel> cpu_kernels(const Op& op) {
  const auto it = table().find(&op);
  return it == table().end() ? std::span<const Kernel>{} : it->second.kernels;
}

Tile cpu_tile(const Op& op, std::span<const DType> in, DType out) {
  const auto it = table().find(&op);
  return it == table().end() || !it->second.tile ? nullptr : it->second.tile(in, out);
}

const Kernel& choose_kernel(const Call& call) {
  for (const Kernel& k : cpu_kernels(*call.node.op))
    if (accepts(k, call)) return k;
  throw Error(call.node.op->name, "no kernel accepts these arguments").as(Error::Kind::bug);
}

}  // namespace stretto
