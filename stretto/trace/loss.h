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
// The same where the classes come in parts, so that the pipeline may be cut between two of them:
//
//   EntropyOfParts e(labels, vocab);
//   e.add(contract(h, first_half, model), half, 0);
//   h = boundary(h), e.boundary();                       // what is carried on: two numbers per row
//   e.add(contract(h, second_half, model), rest, half.size);
//   return e.loss();
class EntropyOfParts {
 public:
  EntropyOfParts(Tensor labels, Dim classes, i64 ignore = -100)
      : labels_(labels), classes_(std::move(classes)), ignore_(ignore) {}
  void add(Tensor logits, const Dim& part, i64 first);  // logits of the classes from `first` on
  void boundary();
  Loss loss() const;

 private:
  Tensor labels_;
  Dim classes_;
  i64 ignore_;
  Tensor log_sum_, label_;  // so far: the log of the sum of exponentials, and the label's logit
};
Loss mean_of(Tensor x);                   // mean over all of x's elements
Loss ratio_of(Tensor sum, Tensor count);  // a term of one's own

}  // namespace stretto
