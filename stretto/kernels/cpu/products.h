// Memory that matrix products take beside their operands: one buffer for every thread that makes them. A step takes no
// memory, so they are asked for before the first one.
//
//   reserve_products(4);       // for four threads; Error: [memory] ... when the system refuses
#pragma once
#include <cstddef>

#include "stretto/base/id.h"

namespace stretto {

constexpr u64 product_buffer = u64(2) << 20;  // bytes per thread: a large page

// From now on so many threads of this process, all together, can make products.
void reserve_products(int threads);
std::byte* product_memory();  // this thread's buffer; one that nobody reserved is taken now

}  // namespace stretto
