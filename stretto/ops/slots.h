// expert_slots(which, seq, choice, experts, slot): which of their experts' slots tokens get.
//
// Every expert has slot.size slots per sequence, taken in the order of tokens. The result is `which` with places
// instead of experts, expert * slots + slot, and -1 for who comes too late. All dims but the token's and the choice's
// are sequences of their own, so that nothing depends on a layout.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {

struct SlotsAttrs {
  DimId token, choice;
  i64 experts = 1, slots = 1;
  static constexpr void fields(auto& s, auto f) {
    f("token", s.token);
    f("choice", s.choice);
    f("experts", s.experts);
    f("slots", s.slots);
  }
};
Tensor expert_slots(Tensor which, const Dim& token, const Dim& choice, const Dim& experts, const Dim& slot);

}  // namespace stretto
