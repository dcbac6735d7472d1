// What a run touches: the buffers of its body that its calls read and write, and what those buffers are.
//
//   for (const Touch& t : touches_of(*program.calls[run.task], calls_of(run, *program.calls[run.task])))
//     if (const Binding* b = binding_of(program, run, t.buffer)) fmt::print("{}\n", t.written);
#pragma once
#include <vector>

#include "stretto/program/program.h"

namespace stretto {

// Bytes of a buffer, in order and apart from each other.
struct ByteSpan {
  u64 from = 0, to = 0;
  bool operator==(const ByteSpan&) const = default;
};
using ByteSpans = std::vector<ByteSpan>;
inline const ByteSpans everything{{0, ~u64(0)}};
bool meet(const ByteSpans&, const ByteSpans&);
bool covers(const ByteSpans& all, const ByteSpans& part);

// What a call touches of an operand's or a result's buffer. Of views in very many pieces: all from the first to the last.
ByteSpans spans_of(const Ref&);

struct Touch {
  BufferId buffer;
  bool read = false, written = false;
  ByteSpan span = {};
};
// In the order of buffers. Of all calls of a body together: whole buffers; of some of them: what they touch.
std::vector<Touch> touches_of(const Calls&, CallRange);

// Null: a temporary of the run.
const Binding* binding_of(const Program&, const Run&, BufferId);

}  // namespace stretto
