#include "stretto/kernels/cpu/norm.h"

namespace stretto {
std::span<const Kernel> rms_norm_grad_kernels() { return norm_grad_kernels(false); }
}  // namespace stretto
