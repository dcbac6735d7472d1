// What a run touches: the buffers of its body that its calls read and write, and what those buffers are.
//
//   for (const Touch& t : touches_of(*program.calls[run.task], calls_of(run, *program.calls[run.task])))
//     if (const Binding* b = binding_of(program, run, t.buffer)) fmt::print("{}\n", t.written);
#pragma once
#include <limits>
#include <vector>

#include "stretto/program/program.h"

namespace stretto {

// Bytes of a buffer: spans in ascending order with gaps between them.
struct ByteSpan {
  u64 from = 0, to = 0;
  bool operator==(const ByteSpan&) const = default;
};
using ByteSpans = std::vector<ByteSpan>;
inline const ByteSpans everything{{0, std::numeric_limits<u64>::max()}};
bool meet(const ByteSpans&, const ByteSpans&);
bool covers(const ByteSpans& all, const ByteSpans& part);

// What a call touches of the buffer of an operand or a result. A view in very many pieces counts as all bytes from its
// first to its last.
ByteSpans spans_of(const Ref&);

struct Touch {
  BufferId buffer;
  bool read = false, written = false;
  ByteSpan span = {};
};
// In the order of buffers. All calls of a body together touch whole buffers, some of them a span each.
std::vector<Touch> touches_of(const Calls&, CallRange);

// Null: a temporary of the run.
const Binding* binding_of(const Program&, const Run&, BufferId);

}  // namespace stretto
