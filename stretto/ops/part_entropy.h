// What some of the classes add to a cross-entropy, where another part of the logits is elsewhere: the log of the sum of
// their exponentials, and the label's logit if it is one of them. Made by EntropyOfParts of trace/loss.h.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {

struct PartEntropyAttrs {
  DimId over, whole;  // classes of this part, and of all parts
  i64 first = 0;      // class of this part's first logit
  i64 ignore = -100;
  static constexpr void fields(auto& s, auto f) {
    f("over", s.over);
    f("whole", s.whole);
    f("first", s.first);
    f("ignore", s.ignore);
  }
};
struct PartEntropy {
  Tensor log_sum, label;  // per row; f32 beside bf16 logits. `label` is 0 where the label is of another part or none
};
PartEntropy part_entropy(Tensor logits, Tensor labels, const Dim& over, i64 first, const Dim& whole, i64 ignore = -100);

}  // namespace stretto
