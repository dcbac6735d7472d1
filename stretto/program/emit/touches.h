// What a run touches: the buffers of its body that its calls read and write, and what those buffers are.
//
//   for (const Touch& t : touches_of(*program.calls[run.task], calls_of(run, *program.calls[run.task])))
//     if (const Binding* b = binding_of(program, run, t.buffer)) fmt::print("{}\n", t.written);
#pragma once
#include <vector>

#include "stretto/ir/spans.h"
#include "stretto/program/program.h"

namespace stretto {

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
