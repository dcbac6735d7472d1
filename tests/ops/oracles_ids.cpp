// Ops with ids, labels, choices and random numbers, from their definitions.
#include <cmath>

#include "ops/oracle.h"
#include "stretto/base/hash.h"
#include "stretto/base/philox.h"
#include "stretto/ops/cross_entropy.h"
#include "stretto/ops/cross_entropy_grad.h"
#include "stretto/ops/dropout.h"
#include "stretto/ops/embedding.h"
#include "stretto/ops/embedding_grad.h"
#include "stretto/ops/slots.h"

namespace stretto::test {
namespace {

double embedding(const Element& e) { return e.in(0, e.at.with(e.attrs<EmbeddingAttrs>().vocab, i64(e.in(1)))); }

double embedding_grad(const Element& e) {
  const i64 row = e.at[e.attrs<EmbeddingGradAttrs>().vocab];
  return e.sum(e.dims(1), [&](const At& j) { return i64(e.in(1, j)) == row ? e.in(0, j) : 0; });
}

// softmax(logits) - onehot(label) of one logit; 0 where the label does not count.
template <class A>
double difference(const Element& e, const A& a) {
  const i64 label = i64(e.in(1));
  if (label == a.ignore) return 0;
  const double total = e.sum({a.over}, [&](const At& j) { return std::exp(e.in(0, j)); });
  return std::exp(e.in(0)) / total - (e.at[a.over] == label);
}

// Results: the sum of -log softmax(logits)[label] over all labels that count, and the logits' gradient times `scale`.
double cross_entropy(const Element& e) {
  const CrossEntropyAttrs& a = e.attrs<CrossEntropyAttrs>();
  if (e.result == 1) return e.in(2) * difference(e, a);
  return e.sum(e.dims(1), [&](const At& row) {
    const i64 label = i64(e.in(1, row));
    if (label == a.ignore) return 0.0;
    const double total = e.sum({a.over}, row, [&](const At& j) { return std::exp(e.in(0, j)); });
    return std::log(total) - e.in(0, row.with(a.over, label));
  });
}

double cross_entropy_grad(const Element& e) { return e.in(2) * difference(e, e.attrs<CrossEntropyGradAttrs>()); }

// Word i of a sequence's random numbers decides about its element i; the key is made of seed and name.
double dropout(const Element& e) {
  const DropoutAttrs& a = e.attrs<DropoutAttrs>();
  u64 i = 0, row = u64(e.now.first_row);
  for (DimId d : e.dims(0)) {
    if (contains(a.batch, d))
      row += u64(e.at[d]);
    else
      i = i * u64(e.size(d)) + u64(e.at[d]);
  }
  const u64 key = hash_of(e.now.seed, hash_of(std::string_view(a.name)));
  const Philox4 words =
      philox({std::uint32_t(i / 4), std::uint32_t(i / 4 >> 32), std::uint32_t(row), std::uint32_t(e.now.step)},
             {std::uint32_t(key), std::uint32_t(key >> 32)});
  return double(words[i % 4]) < a.rate * 0x1p32 ? 0 : e.in(0) / (1 - a.rate);
}

// Has the token at `j` chosen j's expert? Fewer than k experts come before it: larger, or as large and earlier.
bool chooses(const Element& e, const SlotsAttrs& a, const At& j) {
  i64 before = 0;
  for (i64 other = 0; other < e.size(a.expert); ++other) {
    const double gate = e.in(0, j.with(a.expert, other));
    before += gate > e.in(0, j) || (gate == e.in(0, j) && other < j[a.expert]);
  }
  return before < a.k;
}

// Results: who chose whom; and the slots, which an expert's tokens take in their order.
double slots(const Element& e) {
  const SlotsAttrs& a = e.attrs<SlotsAttrs>();
  if (!chooses(e, a, e.at)) return 0;
  if (e.result == 0) return 1;
  i64 slot = 0;
  for (i64 earlier = 0; earlier < e.at[a.token]; ++earlier) slot += chooses(e, a, e.at.with(a.token, earlier));
  return e.at[a.capacity] == slot;
}

constexpr NamedOracle id_table[] = {
    {"cross_entropy", cross_entropy}, {"cross_entropy_grad", cross_entropy_grad}, {"dropout", dropout},
    {"embedding", embedding},         {"embedding_grad", embedding_grad},         {"slots", slots},
};

}  // namespace

std::span<const NamedOracle> oracles_of_ids() { return id_table; }

}  // namespace stretto::test
