// Ops with ids, labels, choices and random numbers, from their definitions.
#include <algorithm>
#include <cmath>

#include "ops/oracle.h"
#include "stretto/base/hash.h"
#include "stretto/base/philox.h"
#include "stretto/ops/cross_entropy.h"
#include "stretto/ops/cross_entropy_grad.h"
#include "stretto/ops/dropout.h"
#include "stretto/ops/embedding.h"
#include "stretto/ops/embedding_grad.h"
#include "stretto/ops/pick.h"
#include "stretto/ops/slots.h"
#include "stretto/ops/stochastic_round.h"
#include "stretto/ops/top_k.h"

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

// Half i % 8 of block i / 8 of random numbers is added where bf16 ends, and what is there then is cut off.
double stochastic_round(const Element& e) {
  const StochasticRoundAttrs& a = e.attrs<StochasticRoundAttrs>();
  u64 i = 0;
  if (a.box.empty()) {
    for (DimId d : e.dims(0)) i = i * u64(e.size(d)) + u64(e.at[d]);
  } else {
    i64 rest = e.at[e.dims(0)[0]], weight = 1;
    for (std::size_t k = a.box.size(); k-- > 0; weight *= e.size(a.box[k])) {
      const auto told = std::find(a.split.begin(), a.split.end(), i64(k));
      const i64 block = told == a.split.end() ? 0 : i64(e.in(1 + int(told - a.split.begin())));
      const i64 size = e.graph.size(a.box[k]);
      i += u64((block * size + (k > 0 ? rest % size : rest)) * weight);
      rest /= size;
    }
  }
  const u64 key = hash_of(e.now.seed, hash_of(std::string_view(a.name)));
  const Philox4 words =
      philox({std::uint32_t(i / 8), std::uint32_t(i / 8 >> 32), std::uint32_t(a.which), std::uint32_t(e.now.step)},
             {std::uint32_t(key), std::uint32_t(key >> 32)});
  const float x = float(e.in(0));
  const double half = double(words[i % 8 / 2] >> (i % 2 * 16) & 0xFFFF);
  if (x == 0) return 0;
  const double step = std::ldexp(1, std::max(std::ilogb(x), -126) - 7);
  return std::copysign(std::floor(std::abs(x) / step + half * 0x1p-16) * step, x);
}

// The j-th of the chosen is the one with j before it: larger, or as large and earlier.
double top_k(const Element& e) {
  const TopKAttrs& a = e.attrs<TopKAttrs>();
  for (i64 one = 0; one < e.size(a.over); ++one) {
    const double x = e.in(0, e.at.with(a.over, one));
    i64 before = 0;
    for (i64 other = 0; other < e.size(a.over); ++other) {
      const double y = e.in(0, e.at.with(a.over, other));
      before += y > x || (y == x && other < one);
    }
    if (before == e.at[a.choice]) return double(one);
  }
  return -1;
}

// The holder's index that a place stands for; the last dim counts fastest.
At at_place(const Element& e, At at, const DimSet& over, i64 place) {
  for (auto d = over.rbegin(); d != over.rend(); ++d) {
    at = at.with(*d, place % e.size(*d));
    place /= e.size(*d);
  }
  return at;
}

double pick(const Element& e) {
  const PickAttrs& a = e.attrs<PickAttrs>();
  const DimSet space = without(joined(e.dims(0), e.dims(1)), a.over);
  return e.sum(without(space, a.out), [&](const At& j) { return e.in(0, at_place(e, j, a.over, i64(e.in(1, j)))); });
}

double unpick(const Element& e) {
  const UnpickAttrs& a = e.attrs<UnpickAttrs>();
  return e.sum(without(joined(e.dims(0), e.dims(1)), a.out), [&](const At& j) {
    const At to = at_place(e, j, a.over, i64(e.in(1, j)));
    const bool here = std::all_of(a.over.begin(), a.over.end(), [&](DimId d) { return to[d] == e.at[d]; });
    return here ? e.in(0, j) : 0;
  });
}

// An expert's slots go to who names it first: earlier tokens, and of one token earlier choices.
double slots(const Element& e) {
  const SlotsAttrs& a = e.attrs<SlotsAttrs>();
  i64 before = 0;
  e.each({a.token, a.choice}, e.at, [&](const At& j) {
    const bool earlier = j[a.token] < e.at[a.token] || (j[a.token] == e.at[a.token] && j[a.choice] < e.at[a.choice]);
    before += earlier && e.in(0, j) == e.in(0);
  });
  return before < a.slots ? e.in(0) * double(a.slots) + double(before) : -1;
}

constexpr NamedOracle id_table[] = {
    {"cross_entropy", cross_entropy},
    {"cross_entropy_grad", cross_entropy_grad},
    {"dropout", dropout},
    {"embedding", embedding},
    {"embedding_grad", embedding_grad},
    {"pick", pick},
    {"slots", slots},
    {"stochastic_round", stochastic_round},
    {"top_k", top_k},
    {"unpick", unpick},
};

}  // namespace

std::span<const NamedOracle> oracles_of_ids() { return id_table; }

}  // namespace stretto::test
