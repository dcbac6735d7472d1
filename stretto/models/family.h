// The families of models. One family = <family>.cpp, which holds its Family, and one line in families.def.
//
//   Model model = make_model({.family = "gpt2", .layers = 2}, 16);   // 16 sequences per step
//
// A model has the inputs `ids` and `targets` {batch seq}: targets[t] is the id that follows ids[t], -100 is ignored.
// With `documents` also `segments` {batch seq}: positions attend to positions of their own number only.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/models/config.h"
#include "stretto/trace/trace.h"

namespace stretto {

// One parameter and where it lies in a Hugging Face directory. There it is a vector (rows 0) or a matrix of the first
// `rows` dims by the others, or the transpose of that.
struct ParamSpec {
  std::string name;
  std::vector<i64> sizes;
  std::string stored = {};  // name on disk, "" when the family has no such form
  int rows = 0;
  bool transposed = false;
  i64 parts = 0;         // on disk one tensor per element of the first dim, with its number in the place of {}
  bool batched = false;  // on disk one matrix per element of the first dim, which `rows` does not count, in one tensor
  // On disk it is a part of a larger matrix: what is number i there along the second dims of ours is number
  // i / block * stride + offset + i % block of `total`.
  struct Cut {
    i64 block = 1, stride = 0, offset = 0, total = 0;
  };
  std::optional<Cut> cut = {};
  ParamSpec part(i64 i) const;
  i64 elements() const;
  std::vector<i64> stored_shape() const;
  bool plain() const { return !batched && !cut; }
  std::vector<i64> stored_places() const;  // of every element the index in the tensor on disk
};

struct Family {
  std::string_view name, summary;
  void (*fill)(ModelConfig&) = nullptr;  // gives open fields their values; must not fail
  void (*check)(const ModelConfig&, std::vector<Fault>&) = nullptr;
  std::vector<ParamSpec> (*params)(const ModelConfig&) = nullptr;  // in the order of tracing
  // ids {batch seq} -> what the head reads, {batch seq_r model}. The config is complete and valid. May add to
  // Trace::penalties.
  Tensor (*hidden)(Trace&, const ModelConfig&, Tensor ids) = nullptr;
  bool attends = true;                  // has attention at all
  std::string_view stored_prefix = {};  // of most names on disk; files without it are read too
};

std::span<const Family* const> families();
const Family& family_named(std::string_view name);  // unknown: Error with the nearest name

// ids {batch seq} -> logits {batch seq vocab}, of a config that is complete and valid.
Tensor logits_of(Trace&, const ModelConfig&, Tensor ids);
// `rows` sequences per step, of `seq` ids each (0: the context).
Model make_model(const ModelConfig&, i64 rows, i64 seq = 0);
// The same text for decoding: the metric `logits` {vocab} is what follows the last id of `ids` {batch=1 seq}.
Model make_decoder(const ModelConfig&);

#define FAMILY(name) extern const Family name##_family;
#include "stretto/models/families.def"
#undef FAMILY

}  // namespace stretto
