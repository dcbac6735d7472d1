// What the processor must have for the kernels: asked before the first one runs, so that a message says it instead of
// an illegal instruction.
//
//   check_processor(this_processor());      // Error: [processor] ...
#pragma once
#include <string_view>

namespace stretto {

struct Processor {
  bool avx2 = false, fma = false;
  bool avx512 = false;  // F, BW, DQ and VL
  bool avx512_bf16 = false;
  bool amx_bf16 = false;  // with AVX-512; whether the system lets a process use it is another question
};
Processor this_processor();
// The forms of kernels there are, best first: "amx", "avx512_bf16", "avx512", "avx2". A processor that is to do as if
// it had nothing better than the form of that name; the variable STRETTO_KERNELS says so for a whole process.
Processor limited(Processor, std::string_view form);
Processor usable_processor();  // this one, as that variable limits it
void check_processor(const Processor&);

}  // namespace stretto
