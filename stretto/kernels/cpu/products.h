// The memory that matrix products take beside their operands. The BLAS library has a buffer for every thread that is in
// a product; when the system refuses one, it asks again without end. So they are asked for beforehand.
//
//   reserve_products(4);       // for four threads; Error: [memory] ... when the system refuses
#pragma once
#include <string>

#include "stretto/base/id.h"

namespace stretto {

constexpr u64 product_reserved = u64(128) << 20;  // bytes of address space per thread
constexpr u64 product_touched =
    u64(9) << 20;                          // of them in memory: what large products were seen to take, and some more
constexpr int most_product_threads = 512;  // for more the library has no buffers, however much memory there is

// The library chooses its kernels by processors it knows: on one that is newer than the library it may take those of
// 2004. Then others are chosen for it, the best that run here. What OPENBLAS_CORETYPE says stays. Called before the
// first product; returns the name of the form.
std::string choose_product_form();

// Does an element's sum not depend on how many rows its product has, where products are large enough (alike_by_rows)?
// The forms for AVX-512 have that, those for AVX2 (Haswell, Zen) do not. Asked by making a product twice.
bool product_rows_alike();

// From now on so many threads of this process, all together, can make products.
void reserve_products(int threads);

}  // namespace stretto
