// The kernels of layer_norm (centered) and rms_norm (not). A row runs along the dim they normalise over.
#pragma once
#include "stretto/kernels/kernel.h"

namespace stretto {

std::span<const Kernel> norm_kernels(bool centered);
std::span<const Kernel> norm_grad_kernels(bool centered);

}  // namespace stretto
