#include "stretto/base/pages.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>

namespace stretto {
namespace {

constexpr std::size_t small_page = 4096, large_page = 512 * small_page;
constexpr int collapse_pages = 25;  // MADV_COLLAPSE, which older headers lack

// Address space from a large page on. One large page more than needed is reserved; what is before the first and after
// the last one is given back.
std::byte* reserve(std::size_t size) {
  void* const room = mmap(nullptr, size + large_page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return nullptr;
  std::byte* const begin = static_cast<std::byte*>(room);
  const std::size_t skipped = (large_page - reinterpret_cast<std::uintptr_t>(begin) % large_page) % large_page;
  std::byte* const at = begin + skipped;
  if (skipped > 0) munmap(begin, skipped);
  munmap(at + size, large_page - skipped);
  return at;
}

}  // namespace

std::size_t Pages::whole(std::size_t bytes) { return (bytes + large_page - 1) / large_page * large_page; }

std::optional<Pages> Pages::map(std::size_t bytes) { return map(bytes, std::nullopt); }
std::optional<Pages> Pages::map_file(std::size_t bytes, int file) { return map(bytes, std::optional(file)); }

std::optional<Pages> Pages::map(std::size_t bytes, std::optional<int> file) {
  const std::size_t size = whole(bytes);
  std::byte* const at = reserve(size);
  if (!at) return {};
  Pages pages(at, size, file.has_value());
  const int flags = MAP_FIXED | (file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
  if (mmap(at, size, PROT_READ | PROT_WRITE, flags, file.value_or(-1), 0) == MAP_FAILED) return {};
  madvise(at, size, MADV_HUGEPAGE);
  return pages;
}

Pages::~Pages() {
  if (at_) munmap(at_, bytes_);
}

void Pages::touch() {
  if (!file_) {  // one write per page is enough: the system hands out zeroed pages
    for (std::size_t i = 0; i < bytes_; i += small_page) at_[i] = std::byte{0};
    return;
  }
  // Systems seldom give shared memory large pages unless asked for each of them, when something is in it; small ones
  // make kernels a few percent slower. Older systems refuse: nothing is lost.
  for (std::size_t i = 0; i < bytes_; i += large_page) at_[i] = std::byte{0};
  madvise(at_, bytes_, collapse_pages);
  std::memset(at_, 0, bytes_);
}

}  // namespace stretto
