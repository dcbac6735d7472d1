#include "stretto/cost/kernel.h"

#include <algorithm>
#include <cmath>

namespace stretto {
namespace {

constexpr double score_kernels = 3;  // of kept scores: two products and what goes between them

double side(double x, double small) { return x / (x + small); }

// What a short side costs is time, whatever the speed: of products that are so many times as fast it is more.
double product_seconds(const ProductShape& p, double peak, const Rates& r, double faster = 1) {
  const double small = r.small * faster;
  const double reached = peak * faster * r.product * side(p.m, small) * side(p.n, small) * side(p.k, small);
  return 2 * p.batches * p.m * p.n * p.k / reached;
}

// Batched products of heads, and the passes over their scores between them.
double kept_scores_seconds(const AttentionShape& a, double peak, double bandwidth, const Rates& r) {
  const ProductShape scores{a.heads, a.queries, a.keys, a.head}, values{a.heads, a.queries, a.value, a.keys};
  const ProductShape to_keys{a.heads, a.keys, a.head, a.queries};  // gradients of queries' and keys' side alike
  const double all = a.heads * a.queries * a.keys;
  double t = score_kernels * r.kernel;
  if (!a.backward)
    return t + product_seconds(scores, peak, r) + product_seconds(values, peak, r) + all * r.scores_forward / bandwidth;
  t += 2 * product_seconds(to_keys, peak, r) + product_seconds(scores, peak, r) + product_seconds(values, peak, r);
  return t + score_kernels * r.kernel + all * r.scores_backward / bandwidth;
}

double attention_seconds(const KernelWork& w, const AttentionShape& a, const Machine& m) {
  const Rates& r = *m.rates;
  const double peak = m.rate(w.of_bf16);
  if (r.scores_forward > 0) return kept_scores_seconds(a, peak, m.memory_bandwidth * r.elements, r);
  return w.cost.flops / (peak * r.attention * (a.backward ? r.attention_backward : 1)) +
         (a.backward ? 2 : 1) * r.kernel;
}

double seconds_of_one(const KernelWork& w, const Machine& m) {
  const double bytes = w.cost.read + w.cost.written + (w.accumulates ? w.cost.written : 0);
  if (!m.rates) return seconds(m, w.cost.flops, bytes, w.of_bf16);
  if (bytes == 0 && w.cost.flops == 0) return 0;
  const Rates& r = *m.rates;
  if (const auto* a = std::get_if<AttentionShape>(&w.cost.shape)) return attention_seconds(w, *a, m);
  const double bandwidth = m.memory_bandwidth * r.elements;
  const auto* p = std::get_if<ProductShape>(&w.cost.shape);
  if (!p) return bytes / bandwidth + r.kernel;
  const bool narrow = w.narrow && r.narrow > 1;
  // Of the left operand, an activation or its gradient: weights are cast once for all microbatches of a step.
  const double casts = narrow ? r.cast * p->batches * p->m * p->k / bandwidth + r.kernel : 0;
  const double peak = m.rate(w.of_bf16) * (p->batches > 1 ? r.grouped : 1);
  return std::max(product_seconds(*p, peak, r, narrow ? r.narrow : 1), bytes / bandwidth) + casts + r.kernel;
}

// Of a rank's threads. What is shorter than one's part is worth no second one; waking the others, and waiting for the
// last of them, was measured on an AMD EPYC (bench/threads.cpp).
constexpr double least_part = 20e-6, waking = 5e-6;
double shared(double seconds, int threads) {
  const double parts = std::clamp(seconds / least_part, 1.0, double(threads));
  return parts < 2 ? seconds : seconds / std::floor(parts) + waking;
}

}  // namespace

WorkKind kind_of(const KernelWork& w) {
  if (std::holds_alternative<ProductShape>(w.cost.shape)) return WorkKind::product;
  return std::holds_alternative<AttentionShape>(w.cost.shape) ? WorkKind::attention : WorkKind::elements;
}

double kernel_seconds(const KernelWork& w, const Machine& m) { return shared(seconds_of_one(w, m), m.threads); }

}  // namespace stretto
