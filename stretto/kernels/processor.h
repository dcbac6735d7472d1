// Are kernels compiled for instructions that this processor has? A message says so, instead of an illegal instruction.
#pragma once

namespace stretto {

void check_kernels_run_here();

}  // namespace stretto
