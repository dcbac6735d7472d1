// What a run touches: the buffers of its body that its calls read and write, and what those buffers are.
//
//   KnownTouches touches(program);
//   for (const Touch& t : touches.of(run))
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

// Found once for every task and part of one.
class KnownTouches {
 public:
  explicit KnownTouches(const Program& p) : p_(p), known_(p.step->tasks.size()) {}  // it must outlive this
  const std::vector<Touch>& of(const Run&);

 private:
  struct OfCalls {
    CallRange calls;
    std::vector<Touch> touches;
  };
  const Program& p_;
  IdVector<TaskId, std::vector<OfCalls>> known_;
};

// Null: a temporary of the run.
const Binding* binding_of(const Program&, const Run&, BufferId);

}  // namespace stretto
