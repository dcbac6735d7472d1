// bf16 for ops whose kernels know f32 only (Op::staged): operands are copied to f32 in scratch, results back from
// there.
//
//   if (needs_stage(call.op())) { const Graph g = staged(call.op()); ... g.nodes.back() ... }
#pragma once
#include "stretto/ir/op.h"

namespace stretto {

bool needs_stage(const OpCall&);
// The dims along which copies are made slice by slice: everything has them, and the op works on every index by itself.
// One, and more until a slice has few elements.
DimSet stage_slices(const OpCall&);
inline constexpr i64 stage_elements = 1 << 18;
// A graph of this node alone, after its operands; f32 stands where bf16 did, for one slice.
Graph staged(const OpCall&);
// Bytes of workspace for a node: the op's own, and the copies where it needs them.
std::size_t scratch_of(const OpCall&);
// What a copy of such a value takes, with the gap to the next.
std::size_t staged_bytes(i64 elements);

}  // namespace stretto
