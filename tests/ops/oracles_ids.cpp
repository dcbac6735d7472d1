// Ops with ids, labels, choices and random numbers, from their definitions.
#include <algorithm>
#include <cmath>

#include "ops/oracle.h"
#include "stretto/base/hash.h"
#include "stretto/base/philox.h"
#include "stretto/ops/cross_entropy.h"
#include "stretto/ops/cross_entropy_grad.h"
#include "stretto/ops/dispatch.h"
#include "stretto/ops/dropout.h"
#include "stretto/ops/embedding.h"
#include "stretto/ops/embedding_grad.h"
#include "stretto/ops/part_entropy.h"
#include "stretto/ops/pick.h"
#include "stretto/ops/slots.h"
#include "stretto/ops/stochastic_round.h"
#include "stretto/ops/top_k.h"

namespace stretto::test {
namespace {

double embedding(const Element& e) {
  const EmbeddingAttrs& a = e.attrs<EmbeddingAttrs>();
  const i64 row = i64(e.in(1)) - a.first;
  return row >= 0 && row < e.size(a.vocab) ? e.in(0, e.at.with(a.vocab, row)) : 0;
}

double embedding_grad(const Element& e) {
  const EmbeddingGradAttrs& a = e.attrs<EmbeddingGradAttrs>();
  const i64 row = a.first + e.at[a.vocab];
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

// Results: the log of the sum of exponentials, and the label's logit, or 0 where it is none of these.
double part_entropy(const Element& e) {
  const PartEntropyAttrs& a = e.attrs<PartEntropyAttrs>();
  if (e.result == 0) return std::log(e.sum({a.over}, [&](const At& j) { return std::exp(e.in(0, j)); }));
  const i64 label = i64(e.in(1));
  const bool here = label != a.ignore && label >= a.first && label < a.first + e.size(a.over);
  return here ? e.in(0, e.at.with(a.over, label - a.first)) : 0;
}

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

// Who goes where, one after the other: tokens of one member after those of another, as member 0 sees it.
struct Journey {
  i64 from, to, expert;  // members
  At token;              // with the batch index within its member
  bool fits;
};
std::vector<Journey> journeys(const Element& e) {
  const GroupRowsAttrs& a = e.attrs<GroupRowsAttrs>();
  const i64 members = e.size(a.from), own = e.size(a.batch);
  DimSet tokens = e.dims(0);
  std::replace(tokens.begin(), tokens.end(), a.whole, a.batch);
  std::vector<Journey> all;
  std::vector<i64> taken(std::size_t(members), 0);
  for (i64 from = 0; from < members; ++from)
    e.each(tokens, {}, [&](const At& at) {
      const i64 expert = i64(e.in(0, at.with(a.whole, from * own + at[a.batch])));
      const i64 to = expert / (a.experts / members);
      all.push_back({from, to, expert, at, taken[std::size_t(to)]++ < e.size(a.rows)});
    });
  return all;
}

double group_rows(const Element& e) {
  const GroupRowsAttrs& a = e.attrs<GroupRowsAttrs>();
  const std::vector<Journey> all = journeys(e);
  const auto count = [&](const auto& which) {
    return double(std::count_if(all.begin(), all.end(), [&](const Journey& j) { return j.fits && which(j); }));
  };
  if (e.result == 1) {
    i64 row = e.at[a.rows];
    for (const Journey& j : all)
      if (j.fits && j.to == 0 && row-- == 0) return double(j.expert);
    return -1;
  }
  if (e.result == 2 || e.result == 3)
    return count([&](const Journey& j) { return j.from == e.at[a.from] && j.to == e.at[a.to]; });
  if (e.result == 4)
    return double(std::count_if(all.begin(), all.end(), [&](const Journey& j) {
      return !j.fits && j.from == 0 && j.token[a.batch] == e.at[a.batch];
    }));
  const auto same = [&](const Journey& j) {
    return j.from == 0 &&
           std::all_of(e.result_dims().begin(), e.result_dims().end(), [&](DimId d) { return j.token[d] == e.at[d]; });
  };
  const auto it = std::find_if(all.begin(), all.end(), same);
  if (!it->fits) return -1;
  const auto before = [&](const Journey& j) { return j.from == 0 && (j.to < it->to || (j.to == it->to && &j < &*it)); };
  return count(before);
}

double dispatch(const Element& e) {
  const DimId rows = e.attrs<DispatchAttrs>().rows;
  return e.sum(e.dims(1), [&](const At& j) { return i64(e.in(1, j)) == e.at[rows] ? e.in(0, j) : 0; });
}

double combine(const Element& e) {
  const CombineAttrs& a = e.attrs<CombineAttrs>();
  return e.sum(without(e.dims(1), a.out), [&](const At& j) { return e.in(0, j.with(a.rows, i64(e.in(1, j)))); });
}

constexpr NamedOracle id_table[] = {
    {"combine", combine},
    {"cross_entropy", cross_entropy},
    {"cross_entropy_grad", cross_entropy_grad},
    {"dispatch", dispatch},
    {"dropout", dropout},
    {"embedding", embedding},
    {"embedding_grad", embedding_grad},
    {"group_rows", group_rows},
    {"part_entropy", part_entropy},
    {"pick", pick},
    {"slots", slots},
    {"stochastic_round", stochastic_round},
    {"top_k", top_k},
    {"unpick", unpick},
};

}  // namespace

std::span<const NamedOracle> oracles_of_ids() { return id_table; }

}  // namespace stretto::test
