// Memory that starts at a large page and may be made of such: kernels miss fewer translations in it.
//
//   std::byte* arena = map_pages(bytes);  ...  munmap(arena, whole_pages(bytes));
#pragma once
#include <cstddef>

namespace stretto {

constexpr std::size_t kPage = 4096, kLargePage = std::size_t(2) << 20;

constexpr std::size_t whole_pages(std::size_t bytes) { return (bytes + kLargePage - 1) / kLargePage * kLargePage; }

// Zeros of this process, or what is in a file, for whoever maps it too; not touched yet. Null when the system refuses.
std::byte* map_pages(std::size_t bytes, int file = -1);

}  // namespace stretto
