#include "stretto/kernels/cpu/norm.h"

namespace stretto {
std::span<const Kernel> rms_norm_kernels() { return norm_kernels(false); }
}  // namespace stretto
