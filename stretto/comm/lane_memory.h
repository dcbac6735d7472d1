// Where the ranks of a process have what all ranks of an actor have: they run one program, so whoever knows where
// something lies in its own memory knows where it lies in another's.
//
//   LaneMemory memory;
//   memory.add({{arena_of_rank_0, bytes}, {another, bytes}});
//   memory.add({{arena_of_rank_1, bytes}, {another, bytes}});          // in the same order
//   std::byte* there = memory.at(1, memory.find(0, here));
#pragma once
#include <cstddef>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/base/id.h"

namespace stretto {

class LaneMemory {
 public:
  struct Block {
    std::byte* at = nullptr;
    u64 bytes = 0;
  };
  struct Place {
    std::size_t block = 0;
    u64 offset = 0;
  };
  void add(std::vector<Block> of_next_rank) { ranks_.push_back(std::move(of_next_rank)); }

  Place find(int rank, const void* p) const {
    const auto* const at = static_cast<const std::byte*>(p);
    std::optional<Place> end;  // of nothing, at the end of a block
    for (std::size_t b = 0; b < ranks_[rank].size(); ++b) {
      const Block& block = ranks_[rank][b];
      if (at < block.at || at > block.at + block.bytes) continue;
      const Place place{b, u64(at - block.at)};
      if (place.offset < block.bytes) return place;
      end = place;
    }
    STRETTO_ASSERT(end, "memory of no rank");
    return *end;
  }
  std::byte* at(int rank, const Place& p) const { return ranks_[rank][p.block].at + p.offset; }

 private:
  std::vector<std::vector<Block>> ranks_;
};

}  // namespace stretto
