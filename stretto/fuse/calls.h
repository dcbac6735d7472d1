// A task's body as kernel calls on buffers: what remains when pointwise ops are grouped, views have become addresses,
// and results are written where they are needed.
//
//   Calls c = fuse(*task.body, {.accumulate = {false}, .same_memory = {-1}});
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "stretto/ir/graph.h"
#include "stretto/ir/view.h"

namespace stretto {

// Where one operand or result lies: bytes from the start of a buffer. A result that nobody reads has no buffer.
struct Ref {
  std::uint32_t buffer = none;
  i64 start = 0;
  View view;
  static constexpr std::uint32_t none = ~0u;
};

struct KernelCall {
  NodeId node;  // in Calls::graph
  std::vector<Ref> in, out;
  bool accumulate = false;  // add to result 0, except the first time in a step
  int key = -1;             // random nodes: which of the task's keys
};

struct BodyBuffer {
  enum class Kind : std::uint8_t { argument, result, temporary } kind = Kind::temporary;
  std::uint32_t index = 0;  // which argument or result
  std::size_t bytes = 0;
  int first = 0, last = 0;  // calls that first and last touch it; -1: none does
};

struct Calls {
  Graph graph;
  std::vector<KernelCall> calls;
  std::vector<BodyBuffer> buffers;
  std::size_t scratch = 0;  // the largest workspace a kernel asks for
  std::string str() const;
};

struct FuseOptions {
  std::vector<bool> accumulate;  // per result: it is added to what is there
  std::vector<int> same_memory;  // per result: the argument whose memory it takes over, or -1
};
// Within one body only; nothing is ever fused across tasks.
Calls fuse(const Graph& body, const FuseOptions&);

// Groups of pointwise nodes become one `fused` node each. Values in `alone` stay results of a node of their own.
Graph group_pointwise(const Graph&, const std::vector<Value>& alone);

std::vector<Fault> verify(const Calls&);

}  // namespace stretto
