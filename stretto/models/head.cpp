#include "stretto/models/head.h"

#include <algorithm>

#include "stretto/models/inner/layers.h"
#include "stretto/ops/add.h"
#include "stretto/ops/boundary.h"
#include "stretto/ops/concat.h"
#include "stretto/ops/contract.h"
#include "stretto/ops/embedding.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/rename.h"
#include "stretto/ops/slice.h"
#include "stretto/ops/tanh.h"

namespace stretto {
namespace {

// The parameter that comes in parts, if any does.
std::string matrix_of_head(const ModelConfig& c) { return *c.tied ? "wte" : "head"; }
bool in_parts(const ModelConfig& c, const std::string& param) { return c.head_parts > 1 && param == matrix_of_head(c); }

Tensor table_of(Trace& t, const ModelConfig& c, const VocabPart& p) {
  return t.param(p.param, {p.dim, Dim{"model", c.width}}, {.init = normal(c.init_std)});
}

// h {batch seq model} times a part of the head's matrix.
Tensor logits_of_part(Trace& t, const ModelConfig& c, Tensor h, const VocabPart& p) {
  const Tensor table = *c.tied ? t.tied(p.param) : table_of(t, c, p);
  const Scope in(t, p.scope);
  Tensor out = contract(h, table, Dim{"model", c.width});
  if (c.logit_scale != 1) out = out * c.logit_scale;
  return c.logit_softcap > 0 ? tanh(out * (1 / c.logit_softcap)) * c.logit_softcap : out;
}

u64 row_bytes(const Array& a) { return a.bytes.size() / a.sizes[0]; }

Array some_rows(const Array& whole, i64 first, i64 rows) {
  Array some{whole.dtype, whole.sizes, {}};
  some.sizes[0] = rows;
  const auto begin = whole.bytes.begin() + first * row_bytes(whole);
  some.bytes.assign(begin, begin + rows * row_bytes(whole));
  return some;
}

void append_rows(Array& to, const Array& more) {
  to.sizes[0] += more.sizes[0];
  to.bytes.insert(to.bytes.end(), more.bytes.begin(), more.bytes.end());
}

}  // namespace

std::vector<VocabPart> vocab_parts(const ModelConfig& c, const std::string& param) {
  const Dim vocab = vocab_dim(c);
  if (!in_parts(c, param)) return {{param, "head", vocab, 0}};
  // Equally many blocks of rows each, as far as that goes. A block is pad_vocab rows, so that only the last part has
  // padding, or so many more that ranks which divide the vocabulary evenly divide its parts as well.
  i64 block = c.pad_vocab;
  while (vocab.size % (2 * block) == 0 && 8 * block * c.head_parts <= vocab.size) block *= 2;
  const i64 blocks = vocab.size / block, share = blocks / c.head_parts, more = blocks % c.head_parts;
  std::vector<VocabPart> parts;
  for (i64 i = 0, first = 0; i < c.head_parts; ++i) {
    const i64 rows = std::min((share + (i < more)) * block, c.vocab - first);
    const bool last = i + 1 == c.head_parts, as_first = i == 0 || rows == parts[0].dim.valid();
    const char* name = as_first ? "vocab_part" : last ? "vocab_last" : "vocab_rest";  // a name has one size
    const Dim dim = vocab.like(name, {.size = rows});  // layouts that split the vocabulary split what is like it
    parts.push_back({fmt::format("{}.{}", param, i), fmt::format("head.{}", i), dim.padded(c.pad_vocab), first});
    first += rows;
  }
  return parts;
}

i64 most_head_parts(const ModelConfig& c) { return (c.vocab + c.pad_vocab - 1) / c.pad_vocab; }

void vocab_params(const ModelConfig& c, const std::string& param, const std::string& stored,
                  std::vector<ParamSpec>& all) {
  for (const VocabPart& p : vocab_parts(c, param))
    all.push_back({p.param, {p.dim.valid(), c.width}, stored, stored.empty() ? 0 : 1});
}

Tensor embedded(Trace& t, const ModelConfig& c, Tensor ids) {
  Tensor x;
  for (const VocabPart& p : vocab_parts(c, "wte")) {
    const Tensor rows = embedding_of_part(table_of(t, c, p), ids, p.dim, p.first, vocab_dim(c));
    x = x ? x + rows : rows;
  }
  return x;
}

Tensor head_logits(Trace& t, const ModelConfig& c, Tensor h, const Dim& seq) {
  h = only_last(t, rename(h, h.dim("seq_r"), seq), seq);
  if (c.head_parts == 1) return logits_of_part(t, c, h, vocab_parts(c, matrix_of_head(c))[0]);
  std::vector<Tensor> parts;
  Dims along;
  for (const VocabPart& p : vocab_parts(c, matrix_of_head(c))) {
    const bool padded = p.dim.valid() < p.dim.size;
    const Tensor own = logits_of_part(t, c, h, p);
    along.push_back(padded ? Dim{"vocab_end", p.dim.valid()} : p.dim);
    parts.push_back(padded ? slice(own, p.dim, along.back()) : own);
  }
  return concat(parts, along, Dim{"vocab_all", c.vocab});
}

Loss head_loss(Trace& t, const ModelConfig& c, Tensor h, Tensor targets) {
  const Dim seq = targets.dim("seq");
  if (c.head_parts == 1) return cross_entropy(head_logits(t, c, h, seq), targets, vocab_dim(c));
  EntropyOfParts entropy(targets, vocab_dim(c));
  for (const VocabPart& p : vocab_parts(c, matrix_of_head(c))) {
    if (p.first > 0) h = boundary(h), entropy.boundary();
    entropy.add(logits_of_part(t, c, rename(h, h.dim("seq_r"), seq), p), p.dim, p.first);
  }
  return entropy.loss();
}

Weights in_head_parts(const ModelConfig& c, Weights weights) {
  const std::string param = matrix_of_head(c);
  const auto whole = weights.find(param);
  if (!in_parts(c, param) || whole == weights.end()) return weights;
  for (const VocabPart& p : vocab_parts(c, param))
    weights.emplace(p.param, some_rows(whole->second, p.first, p.dim.valid()));
  weights.erase(whole);
  return weights;
}

Weights head_parts_joined(const ModelConfig& c, Weights weights) {
  const std::string param = matrix_of_head(c);
  if (!in_parts(c, param)) return weights;
  Array whole;
  for (const VocabPart& p : vocab_parts(c, param)) {
    const auto part = weights.find(p.param);
    if (part == weights.end()) throw Error("head_parts", "parameter '{}' is missing", p.param);
    if (p.first == 0)
      whole = std::move(part->second);
    else
      append_rows(whole, part->second);
    weights.erase(part);
  }
  weights.emplace(param, std::move(whole));
  return weights;
}

}  // namespace stretto
