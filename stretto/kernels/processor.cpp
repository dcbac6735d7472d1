#include "stretto/kernels/processor.h"

#include "stretto/base/processor.h"
#include "stretto/kernels/cpu/pack.h"

namespace stretto {

// Nothing else is done here: this file may be compiled for more than the processor has.
void check_kernels_run_here() {
  if (STRETTO_AVX2) check_processor(this_processor());
}

}  // namespace stretto
