// The kernels of cross_entropy (results: sum, dlogits) and of cross_entropy_grad (result: dlogits).
#pragma once
#include "stretto/kernels/kernel.h"

namespace stretto {

std::span<const Kernel> entropy_kernels(bool with_sum);

}  // namespace stretto
