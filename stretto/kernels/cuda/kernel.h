// Kernels of CUDA devices: per op an ordered list, of which the first that accepts the arguments is used (kernels.def).
// A kernel is text that is written for a call and compiled when the call is prepared.
//
//   const std::vector<CudaSource> launches = choose_cuda_kernel(call).write(call);      // one after the other
#pragma once
#include "stretto/kernels/cuda/products.h"
#include "stretto/kernels/cuda/text.h"

namespace stretto {

struct CudaKernel {
  std::string_view name;
  bool (*accepts)(const Call&) = nullptr;  // null: accepts everything
  std::vector<CudaSource> (*write)(const Call&) = nullptr;
  std::optional<CudaProduct> (*product)(const Call&) = nullptr;  // that cublasLt makes, after what is written
};

std::span<const CudaKernel> cuda_kernels(const Op&);  // empty: there is none
const CudaKernel& choose_cuda_kernel(const Call&);    // Error: none accepts the call

}  // namespace stretto
