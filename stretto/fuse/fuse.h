// Kernel calls for a task's body. Within one body only: nothing is ever fused across tasks.
//
//   Calls calls = fuse(*task.body, {{.accumulate = true}, {.same_memory = ArgumentId(0)}});
#pragma once
#include "stretto/fuse/calls.h"

namespace stretto {

// Where a result goes: memory of its own, unless it says otherwise.
struct ResultMemory {
  bool accumulate = false;                // it is added to what the memory holds
  std::optional<ArgumentId> same_memory;  // the argument whose memory it takes over
  auto operator<=>(const ResultMemory&) const = default;
};
using ResultMemories = IdVector<ResultId, ResultMemory>;

Calls fuse(const Graph& body, const ResultMemories&);

}  // namespace stretto
