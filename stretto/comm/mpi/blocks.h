// A message's memory in blocks that MPI can count: neighbours merged, none above a gibibyte.
//
//   for (const Block& b : blocks_of({{at, bytes}, {elsewhere, more_bytes}})) ...
#pragma once
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "stretto/base/id.h"

namespace stretto {

struct Block {
  std::byte* at = nullptr;
  int bytes = 0;
};

inline std::vector<Block> blocks_of(const std::vector<std::pair<std::byte*, u64>>& stretches) {
  constexpr u64 largest = u64(1) << 30;
  std::vector<std::pair<std::byte*, u64>> runs;
  for (const auto& [at, bytes] : stretches) {
    if (bytes == 0) continue;
    if (!runs.empty() && runs.back().first + runs.back().second == at)
      runs.back().second += bytes;
    else
      runs.push_back({at, bytes});
  }
  std::vector<Block> blocks;
  for (const auto& [at, bytes] : runs)
    for (u64 done = 0; done < bytes; done += largest)
      blocks.push_back({at + done, static_cast<int>(std::min(largest, bytes - done))});
  return blocks;
}

}  // namespace stretto
