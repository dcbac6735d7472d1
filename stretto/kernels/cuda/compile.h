// From the text of a kernel to what the driver loads. Equal text is compiled once in a process, and once on a machine:
// images lie in CudaApi::cache by a hash of text, chip and compiler.
//
//   const std::string& image = compiled(cuda, 80, source.text);      // for sm_80; Error: the compiler's words
#pragma once
#include <string>

#include "stretto/kernels/cuda/api.h"

namespace stretto {

const std::string& compiled(const CudaApi&, int sm, const std::string& text);

}  // namespace stretto
