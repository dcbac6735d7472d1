// A task's body as kernel calls on buffers: what remains when pointwise ops are grouped, views have become addresses,
// and results are written where they are needed. fuse.h makes it.
//
//   for (const KernelCall& call : calls.calls) show(calls.graph.node(call.node).op->name, call.in, call.out);
#pragma once
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "stretto/ir/ids.h"
#include "stretto/ir/view.h"

namespace stretto {

using BufferId = Id<struct BufferTag>;
using CallId = Id<struct CallTag>;

// Where one operand or result lies: bytes from the start of a buffer. A result that nobody reads has no buffer.
struct Ref {
  std::optional<BufferId> buffer;
  i64 start = 0;
  View view;
};

struct KernelCall {
  NodeId node;  // in Calls::graph
  std::vector<Ref> in, out;
  bool accumulate = false;   // add to result 0, except the first time in a step
  std::optional<KeyId> key;  // random nodes only
};

struct BodyBuffer {
  struct Temporary {};
  struct Touched {
    CallId first, last;
  };
  std::variant<Temporary, ArgumentId, ResultId> role;
  std::size_t bytes = 0;
  std::optional<Touched> touched;  // none: no call does

  bool temporary() const { return std::holds_alternative<Temporary>(role); }
  const ArgumentId* argument() const { return std::get_if<ArgumentId>(&role); }
  const ResultId* result() const { return std::get_if<ResultId>(&role); }
};

struct Calls {
  Graph graph;
  IdVector<CallId, KernelCall> calls;
  IdVector<BufferId, BodyBuffer> buffers;
  std::size_t scratch = 0;  // the largest workspace a kernel asks for
  std::string str() const;
};

// Operands are written before they are read, nothing reaches beyond its buffer, nothing is overwritten that the same
// call still reads.
std::vector<Fault> verify(const Calls&);

// Does a pointwise kernel read of `from` just the element that it writes to `to`? Only then may the two share memory:
// another start or other strides would show elements that are written already.
bool same_elements(const Ref& from, const Ref& to);

}  // namespace stretto
