// Arenas in the memory of this process.
//
//   HostArenas arenas;
//   std::byte* at = arenas.allocate(1 << 20);     // zeroed and touched; null for nothing
#pragma once
#include <optional>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/base/pages.h"
#include "stretto/base/text.h"

namespace stretto {

class HostArenas {
 public:
  std::byte* allocate(std::size_t bytes) {
    if (bytes == 0) return nullptr;
    std::optional<Pages> arena = Pages::map(bytes);
    if (!arena)
      throw Error("memory", "the system refuses {}", human_bytes(static_cast<double>(bytes)))
          .hint("use a smaller batch, more microbatches, recompute, or more ranks")
          .as(Error::Kind::run);
    arena->touch();
    return all_.emplace_back(*std::move(arena)).at();
  }

 private:
  std::vector<Pages> all_;
};

}  // namespace stretto
