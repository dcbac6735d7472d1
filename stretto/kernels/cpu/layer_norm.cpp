#include "stretto/kernels/cpu/norm.h"

namespace stretto {
std::span<const Kernel> layer_norm_kernels() { return norm_kernels(true); }
}  // namespace stretto
