#include "stretto/kernels/cuda/kernel.h"

#include <map>

namespace stretto {

#define KERNELS(op) std::span<const CudaKernel> op##_cuda_kernels();
#include "stretto/kernels/cuda/kernels.def"
#undef KERNELS
#define KERNELS(op) extern const Op op##_op;
#include "stretto/kernels/cuda/kernels.def"
#undef KERNELS
std::span<const CudaKernel> pointwise_cuda_kernels();
bool has_cuda_element(const Op&);

std::span<const CudaKernel> cuda_kernels(const Op& op) {
  static const std::map<const Op*, std::span<const CudaKernel>> table{
#define KERNELS(op) {&op##_op, op##_cuda_kernels()},
#include "stretto/kernels/cuda/kernels.def"
#undef KERNELS
  };
  const auto it = table.find(&op);
  if (it != table.end()) return it->second;
  return has_cuda_element(op) ? pointwise_cuda_kernels() : std::span<const CudaKernel>();
}

const CudaKernel& choose_cuda_kernel(const Call& call) {
  for (const CudaKernel& k : cuda_kernels(*call.node.op))
    if (!k.accepts || k.accepts(call)) return k;
  throw Error(call.node.op->name, "has no kernel for CUDA devices yet")
      .hint("use device = \"cpu\", or a model without it");
}

}  // namespace stretto
