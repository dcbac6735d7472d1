#include "stretto/trace/loss.h"

#include "stretto/ops/add.h"
#include "stretto/ops/boundary.h"
#include "stretto/ops/cast.h"
#include "stretto/ops/compare.h"
#include "stretto/ops/constant.h"
#include "stretto/ops/cross_entropy.h"
#include "stretto/ops/exp.h"
#include "stretto/ops/extremum.h"
#include "stretto/ops/input.h"
#include "stretto/ops/log.h"
#include "stretto/ops/part_entropy.h"
#include "stretto/ops/stop_gradient.h"
#include "stretto/ops/sub.h"
#include "stretto/ops/sum.h"
#include "stretto/ops/where.h"

namespace stretto {
namespace {

Tensor scale_input(Builder& b) { return input(b, fmt::format("loss_scale.{}", b.graph.nodes.size()), f64, {}, true); }

}  // namespace

Loss operator+(Loss a, Loss b) {
  for (LossTerm& t : b.terms) a.terms.push_back(std::move(t));
  return a;
}

Loss operator*(double weight, Loss l) {
  for (LossTerm& t : l.terms) t.weight *= weight;
  return l;
}

Loss named(std::string name, Loss l) {
  for (LossTerm& t : l.terms) t.name = name;
  return l;
}

Loss cross_entropy(Tensor logits, Tensor labels, Dim over, i64 ignore) {
  Builder& b = builder_of("cross_entropy", {logits, labels});
  const Tensor scale = scale_input(b);
  const CrossEntropy r = cross_entropy_terms(logits, labels, scale, over, ignore);
  const Tensor count = sum(cast(not_equal(labels, ignore), f64), labels.dims());
  return {{{.name = "cross_entropy", .sum = r.sum, .count = count, .scale = scale}}};
}

namespace {

// log(exp(a) + exp(b)). Its gradient does not depend on what both are shifted by.
Tensor log_of_both(Tensor a, Tensor b) {
  const Tensor top = stop_gradient(maximum(a, b));
  return log(exp(a - top) + exp(b - top)) + top;
}

}  // namespace

void EntropyOfParts::add(Tensor logits, const Dim& part, i64 first) {
  const PartEntropy p = part_entropy(logits, labels_, part, first, classes_, ignore_);
  log_sum_ = log_sum_ ? log_of_both(log_sum_, p.log_sum) : p.log_sum;
  label_ = label_ ? label_ + p.label : p.label;
}

void EntropyOfParts::boundary() {
  log_sum_ = stretto::boundary(log_sum_);
  label_ = stretto::boundary(label_);
}

Loss EntropyOfParts::loss() const {
  Builder& b = builder_of("cross_entropy", {log_sum_, labels_});
  const Tensor scale = scale_input(b), difference = cast(log_sum_, f64) - cast(label_, f64);
  // Labels are known from the first piece on; what is made of them here is made where it is read.
  b.force_piece = b.graph.node(log_sum_.value).piece;
  const Tensor counts = not_equal(labels_, ignore_);
  b.force_piece.reset();
  return {{{.name = "cross_entropy",
            .sum = sum_all(where(counts, difference, 0.0)),
            .count = sum(cast(not_equal(labels_, ignore_), f64), labels_.dims()),
            .scale = scale}}};
}

Loss mean_of(Tensor x) {
  Builder& b = builder_of("mean_of", {x});
  double count = 1;
  for (const Dim& d : x.dims()) count *= double(d.valid());
  const Tensor total = sum(cast(x, wide(x.dtype())), x.dims());
  return {{{.name = "mean", .sum = total, .count = constant(b, count, f64), .scale = scale_input(b)}}};
}

Loss ratio_of(Tensor sum, Tensor count) {
  Builder& b = builder_of("ratio_of", {sum, count});
  for (const Tensor& t : {sum, count})
    if (!t.dims().empty())
      throw Error("ratio_of", "{} still has dims", t.str()).hint("sum over them first: sum(x, x.dims())");
  return {{{.name = "ratio", .sum = cast(sum, wide(sum.dtype())), .count = cast(count, f64), .scale = scale_input(b)}}};
}

}  // namespace stretto
