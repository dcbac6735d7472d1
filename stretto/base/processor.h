// What the processor must have for the kernels: asked before the first one runs, so that a message says it instead of an
// illegal instruction.
//
//   check_processor(this_processor());      // Error: [processor] ...
#pragma once

namespace stretto {

struct Processor {
  bool avx2 = false, fma = false;
};
Processor this_processor();
void check_processor(const Processor&);

}  // namespace stretto
