// Runs a kernel that knows f32 only on bf16 memory, by way of copies in scratch (ir/stage.h).
#pragma once
#include "stretto/kernels/kernel.h"

namespace stretto {

bool accepts_staged(const Kernel&, const Call&);
Runner prepare_staged(const Kernel&, const Call&);

}  // namespace stretto
