// Batches of a language model: rows of ids, and the same rows shifted by one as targets.
//
//   TrainingRows training(open_corpus({.path = {"tales.txt"}}, 256), {.length = 256, .batch = 16, .seed = 1});
//   Rows rows = training.at(step);
//
// The rows of a step depend on corpus, options and step only: a run that begins anywhere reads the same.
#pragma once
#include <cstdint>
#include <vector>

#include "stretto/data/corpus.h"
#include "stretto/data/mixture.h"

namespace stretto {

struct Rows {
  std::vector<std::int32_t> ids, targets;  // batch · length each
  std::vector<std::int32_t> segments;      // likewise, when asked for: the number of the document, from 0 in every row
  i64 filled = 0;                          // rows that hold data; the targets of the others are `ignored`
  static constexpr std::int32_t ignored = -100;
};
struct RowsOptions {
  i64 length = 0, batch = 0;
  u64 seed = 0;
  bool documents = false;  // fill in Rows::segments
};

class TrainingRows {
 public:
  TrainingRows(const Corpus&, const RowsOptions&);
  Rows at(i64 step) const;  // step from 1

 private:
  std::vector<std::shared_ptr<const TokenSource>> sources_;
  RowsOptions options_;
  MixtureOrder order_;
};

// Validation reads windows spread evenly over the data, the same ones every time.
i64 validation_batches(const TokenSource&, const RowsOptions&, i64 at_most);
Rows validation_rows(const TokenSource&, const RowsOptions&, i64 batches, i64 index);

}  // namespace stretto
