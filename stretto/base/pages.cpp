#include "stretto/base/pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace stretto {

// One large page more than needed is reserved; what is before the first and behind the last one is given back.
std::byte* map_pages(std::size_t bytes, int file) {
  const std::size_t size = whole_pages(bytes);
  void* const room = mmap(nullptr, size + kLargePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return nullptr;
  std::byte* const begin = static_cast<std::byte*>(room);
  const std::size_t skipped = (kLargePage - reinterpret_cast<std::uintptr_t>(begin) % kLargePage) % kLargePage;
  std::byte* const at = begin + skipped;
  if (skipped > 0) munmap(begin, skipped);
  munmap(at + size, kLargePage - skipped);
  const int flags = MAP_FIXED | (file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED);
  if (mmap(at, size, PROT_READ | PROT_WRITE, flags, file, 0) == MAP_FAILED) {
    munmap(at, size);
    return nullptr;
  }
  madvise(at, size, MADV_HUGEPAGE);
  return at;
}

}  // namespace stretto
