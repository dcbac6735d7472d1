// The sum over all labels that count of -log softmax(logits)[label], and the logits' gradient in the same pass.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {

struct CrossEntropyAttrs {
  DimId over;
  i64 ignore = -100;
  static constexpr void fields(auto& s, auto f) {
    f("over", s.over);
    f("ignore", s.ignore);
  }
};
struct CrossEntropy {
  Tensor sum;      // f64, no dims
  Tensor dlogits;  // scale * (softmax - onehot), zero where the label is `ignore`
};
// `scale` is an f64 scalar. Differentiating `sum` with `scale` itself as the seed uses `dlogits`, which may lie where
// the logits were; any other seed makes a gradient of its own.
CrossEntropy cross_entropy_terms(Tensor logits, Tensor labels, Tensor scale, Dim over, i64 ignore = -100);

// The same from maxima and sums over `over`, for logits whose `over` is split; `seed` is an f64 scalar.
CrossEntropy decomposed_cross_entropy(Tensor logits, Tensor labels, Tensor seed, DimId over, i64 ignore);

}  // namespace stretto
