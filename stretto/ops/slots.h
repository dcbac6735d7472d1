// expert_slots(gates, seq, experts, capacity, 2): which experts a token goes to, and in which of their slots.
//
// Per token the k largest gates are chosen (of equal ones the first). Every expert has `capacity` slots per sequence,
// taken in the order of tokens; who comes too late is dropped. All dims but the token's and the expert's are sequences
// of their own, so that nothing depends on a layout.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {

struct SlotsAttrs {
  DimId token, expert, capacity;
  i64 k = 1;
  static constexpr void fields(auto& s, auto f) {
    f("token", s.token);
    f("expert", s.expert);
    f("capacity", s.capacity);
    f("k", s.k);
  }
};
struct Slots {
  Tensor chosen;  // gates' dims: 1 where the token chose the expert
  Tensor taken;   // gates' dims and capacity: 1 where the token has this slot of the expert
};
Slots expert_slots(Tensor gates, const Dim& token, const Dim& expert, const Dim& capacity, i64 k);

}  // namespace stretto
