// Parameters as the user sees them: without padding, independent of where they lie.
#pragma once
#include "stretto/compile/compile.h"
#include "stretto/base/array.h"

namespace stretto {

// A function of seed, name and logical index only. Padding stays zero.
void initialise(const CompiledParam&, u64 seed, std::byte* to);
Array read_logical(const CompiledParam&, const std::byte* from);
void write_logical(const CompiledParam&, const Array&, std::byte* to);  // checks dtype and sizes

}  // namespace stretto
