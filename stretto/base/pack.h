// Static memory planning: gives every buffer an offset such that buffers alive at the same time do not overlap.
//
//   Packing p = pack({{.bytes = 64, .first = 0, .last = 3}, {.bytes = 32, .first = 2, .last = 5}});
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace stretto {

struct Lifetime {
  std::size_t bytes = 0;
  std::int64_t first = 0, last = 0;  // alive at both ends
};
struct Packing {
  std::vector<std::size_t> offsets;  // multiples of `align`
  std::size_t bytes = 0;
};

// The most bytes alive at any one time: no packing can be smaller. Sizes count rounded up to `align`.
std::size_t live_bound(std::span<const Lifetime>, std::size_t align = 64);

// Optimal for up to 8 buffers; beyond that the best of several greedy orders. Quadratic in what is alive together.
Packing pack(std::span<const Lifetime>, std::size_t align = 64);

// In the order of time, each buffer in the smallest gap that holds it: near linear, for tens of thousands.
Packing pack_quickly(std::span<const Lifetime>, std::size_t align = 64);

// Whether no two buffers that are alive at the same time overlap.
bool disjoint(std::span<const Lifetime>, const Packing&);

}  // namespace stretto
