// Collectives between the ranks along some mesh axes: what all transports share.
//
//   std::uint32_t sum = group.prepare(shape_of(graph, node, mesh));     // before the first round, on every member
//   u64 ticket = group.start(member, sum, in, out);                     // never waits
//   while (work_left()) do_some(), group.progress(member, ticket);
//   group.wait(member, ticket);                                         // out is complete, in may be overwritten
#pragma once
#include <cstdint>

#include "stretto/base/hash.h"
#include "stretto/ir/collective.h"
#include "stretto/ir/tree_sum.h"

namespace stretto {

// All members prepare the same shapes in the same order and start the same collectives in the same order, several of
// which may be under way. From its start to its end a collective owns `out` and reads `in`. They may be the same memory
// for all_reduce; an all_gather's operand may lie at its place in the result, and a reduce_scatter's result at its
// place in the operand.
class CollectiveGroup {
 public:
  virtual ~CollectiveGroup() = default;
  virtual std::uint32_t prepare(const CollectiveShape&) = 0;  // an equal shape gets the same number
  // counts: of rows, how many go from whom to whom, i32; every member gives the same.
  virtual u64 start(int member, std::uint32_t prepared, const void* in, void* out, const void* counts = nullptr) = 0;
  virtual bool progress(int member, u64 ticket) = 0;  // does a fair share of what can be done: is it complete?
  virtual double wait(int member, u64 ticket) = 0;    // seconds slept
  virtual void stop() noexcept = 0;                   // everybody who waits, or will, gets an Error
};

}  // namespace stretto
