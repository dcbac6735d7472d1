// What a model returns: a list of terms. total = Σ weight · (global sum / global count).
//
//   Loss l = cross_entropy(logits, labels, vocab) + 0.01 * mean_of(square(z));
//
// Counts depend on inputs only (else refused): they are made before the first backward.
#pragma once
#include <string>
#include <vector>

#include "stretto/ir/op.h"

namespace stretto {

struct LossTerm {
  std::string name;
  Tensor sum, count;  // without dims, over the microbatch; count in f64
  Tensor scale;       // weight / global count: a per-step scalar that the run provides
  double weight = 1;
};
struct Loss {
  std::vector<LossTerm> terms;
};
Loss operator+(Loss a, Loss b);
Loss operator*(double weight, Loss l);
Loss named(std::string name, Loss l);  // how the terms are called in metrics

// Mean over the labels that are not `ignore`.
Loss cross_entropy(Tensor logits, Tensor labels, Dim over, i64 ignore = -100);
Loss mean_of(Tensor x);                   // mean over all of x's elements
Loss ratio_of(Tensor sum, Tensor count);  // a term of one's own

}  // namespace stretto
