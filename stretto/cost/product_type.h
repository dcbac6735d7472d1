// What matrix products are made in, where that is less than what numbers are kept in.
//
//   Cluster c = cluster_of(device, stack, ProductType::fp8);
#pragma once
#include <cstdint>

namespace stretto {

enum class ProductType : std::uint8_t { as_kept, fp8, fp4 };  // the last two with bf16

}  // namespace stretto
