// What a run touches: the buffers of its body that its calls read and write, and what those buffers are.
//
//   for (const Touch& t : touches_of(*program.calls[run.task], calls_of(run, *program.calls[run.task])))
//     if (const Binding* b = binding_of(program, run, t.buffer)) fmt::print("{}\n", t.written);
#pragma once
#include <vector>

#include "stretto/program/program.h"

namespace stretto {

struct Touch {
  BufferId buffer;
  bool read = false, written = false;
};
std::vector<Touch> touches_of(const Calls&, CallRange);  // in the order of buffers

// Null: a temporary of the run.
const Binding* binding_of(const Program&, const Run&, BufferId);

}  // namespace stretto
