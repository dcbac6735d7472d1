// A kernel of a CUDA device run like one of the CPU's: operands and results are copied to memory of their own on a
// make-believe device, so that one element too many is outside of all memory. It is a device of cuda_api().
//
//   run.run(cuda_kernel());      // KernelRun run
#pragma once
#include "stretto/kernels/kernel.h"

namespace stretto::test {

Kernel cuda_kernel();  // prepares with the kernel that a CUDA device chooses

}  // namespace stretto::test
