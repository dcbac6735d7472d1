#include "stretto/kernels/cpu/norm.h"

namespace stretto {
std::span<const Kernel> layer_norm_grad_kernels() { return norm_grad_kernels(true); }
}  // namespace stretto
