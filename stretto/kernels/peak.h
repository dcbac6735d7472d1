// How fast one core of this machine multiplies matrices, in flops per second: what the use of a machine is measured by.
//
//   double share = flops / (seconds * peak_flops(f32));
#pragma once
#include "stretto/base/dtype.h"

namespace stretto {

double peak_flops(DType);  // measured once, in some hundredths of a second

}  // namespace stretto
