// Collectives of tasks beside other work: within one action, and within an overlap group as one. Where it makes the
// predicted step shorter, also beside weight gradients of the action before, and two microbatches' forwards or
// backwards beside each other; not in programs of more than 10,000 instructions, where trying that would take too long.
//
//   overlap_calls(program, {.cluster = cluster, .predicted = [&](const Program& p) { return takes(p, cluster); }});
//
// Several ways are tried, one of them to leave all in place: the one whose predicted step is the shortest is taken.
//
// A task that waits for its collectives in place becomes parts: each collective starts right after its last operand is
// made and is awaited right before its first reader, with calls of the same and of other tasks of the region between
// them (weight gradients, the other member of the group), in the order of interleave.h. What depends on what, and so
// every bit, stays as it was. All ranks of an actor have one list, so they start their collectives in one order.
#pragma once
#include <functional>

#include "stretto/cost/machine.h"
#include "stretto/program/program.h"

namespace stretto {

struct OverlapOptions {
  Cluster cluster = {};                                       // for whose machines and links calls are ordered
  std::function<double(const Program&)> predicted = nullptr;  // what a step takes there
  bool apart = false;                                         // work_of
};

// All code is complete and memory is not planned yet. Says how many ways were tried.
int overlap_calls(Program&, const OverlapOptions&);

}  // namespace stretto
