// How the attention kernels cut their work, and with it the workspace they need. Copies of a head's keys and values are
// held as panels; scores exist for one block of queries and keys at a time. For ops only, and their kernels.
#pragma once
#include <algorithm>

#include "stretto/base/dtype.h"
#include "stretto/base/id.h"

namespace stretto {

struct AttentionBlocks {
  static constexpr i64 tile = 6;        // rows of the smallest product
  static constexpr i64 most_rows = 72;  // of a block
  i64 width;                            // its columns: two vector registers
  i64 rows, columns;                    // queries and keys of a block: multiples of tile and width
  i64 pitch;                            // from one row of scores to the next
  i64 keys, head, value;                // all of them, rounded up to full tiles and panels

  AttentionBlocks(DType t, i64 queries, i64 all_keys, i64 head_size, i64 value_size) : width(64 / i64(size_of(t))) {
    const auto up = [](i64 n, i64 multiple) { return (n + multiple - 1) / multiple * multiple; };
    rows = std::min<i64>(up(queries, tile), most_rows);
    keys = up(all_keys, 3 * width);  // a multiple of tile too
    columns = std::min<i64>(keys, 33 * width);
    pitch = columns + width;
    head = up(head_size, width);
    value = up(value_size, width);
  }
  i64 forward() const { return (head + value) * (keys + rows) + rows * pitch + rows * 2; }
  i64 backward() const {
    return (3 * head + 2 * value) * keys + rows * pitch * 2 + rows * (2 * head + 2 * value + std::max(head, value)) +
           rows * 2;
  }
};

}  // namespace stretto
