// Batches of a language model: rows of ids, and the same rows shifted by one as targets.
//
//   Corpus corpus = open_corpus({.path = {"tales.txt"}, .validation = 0.05}, 256);
//   Rows rows = training_rows(corpus, {.length = 256, .batch = 16, .seed = 1}, step);
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "stretto/data/token_source.h"

namespace stretto {

struct CorpusOptions {
  std::vector<std::string> path;             // files or globs
  double validation = 0;                     // the last part of the data, 0 to 1, that is held out
  std::vector<std::string> validation_path;  // or files of their own
};
struct Corpus {
  std::shared_ptr<const TokenSource> training, validation;  // validation: null when there is none
  std::string name;                                         // "tales.txt, 400184 bytes"
};
// Both parts hold at least one sequence of `length`, else an Error with the sizes.
Corpus open_corpus(const CorpusOptions&, i64 length);

struct Rows {
  std::vector<std::int32_t> ids, targets;  // batch · length each
  i64 filled = 0;                          // rows that hold data; the targets of the others are `ignored`
  static constexpr std::int32_t ignored = -100;
};
struct RowsOptions {
  i64 length = 0, batch = 0;
  u64 seed = 0;
};
Rows training_rows(const TokenSource&, const RowsOptions&, i64 step);  // step from 1

// Validation reads windows spread evenly over the data, the same ones every time.
i64 validation_batches(const TokenSource&, const RowsOptions&, i64 at_most);
Rows validation_rows(const TokenSource&, const RowsOptions&, i64 batches, i64 index);

}  // namespace stretto
