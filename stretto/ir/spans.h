// Which bytes a strided view covers: what two who use the same memory at once must not share.
//
//   meet(spans_of(even_columns), spans_of(odd_columns))      // false: each lies in the other's gaps
#pragma once
#include <limits>
#include <vector>

#include "stretto/ir/view.h"

namespace stretto {

// Bytes of a buffer: spans in ascending order with gaps between them.
struct ByteSpan {
  u64 from = 0, to = 0;
  bool operator==(const ByteSpan&) const = default;
};
using ByteSpans = std::vector<ByteSpan>;
inline const ByteSpans everything{{0, std::numeric_limits<u64>::max()}};
ByteSpans in_order(ByteSpans);  // any spans, joined where they touch
bool meet(const ByteSpans&, const ByteSpans&);
bool covers(const ByteSpans& all, const ByteSpans& part);

// Of a view whose first element is at byte `start`. One in very many pieces counts as all bytes from its first to its
// last.
ByteSpans spans_of(const View&, u64 start = 0);

}  // namespace stretto
