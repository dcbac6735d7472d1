#include "stretto/kernels/cpu/entropy.h"

namespace stretto {
std::span<const Kernel> cross_entropy_grad_kernels() { return entropy_kernels(false); }
}  // namespace stretto
