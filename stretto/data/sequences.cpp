#include "stretto/data/sequences.h"

#include <algorithm>

namespace stretto {
namespace {

// Reads length + 1 tokens: what follows a token is its target. A row that stands for itself has one target less.
void fill(const TokenSource& source, i64 first, i64 row, const RowsOptions& o, Rows& rows) {
  std::vector<std::int32_t> tokens(o.length + !source.in_rows());
  source.read(first, tokens);
  std::copy_n(tokens.begin(), o.length, rows.ids.begin() + row * o.length);
  source.targets(first, tokens);
  std::copy(tokens.begin() + 1, tokens.end(), rows.targets.begin() + row * o.length);
  if (!o.documents) return;
  const auto segments = rows.segments.begin() + row * o.length, targets = rows.targets.begin() + row * o.length;
  // A document's last token has no target: what follows is another document.
  for (const i64 start : source.documents(first, first + std::ssize(tokens))) {
    targets[start - first - 1] = Rows::ignored;
    std::for_each(segments + std::min(start - first, o.length), segments + o.length, [](std::int32_t& s) { ++s; });
  }
}

Rows empty_rows(const RowsOptions& o) {
  const std::size_t size = o.batch * o.length;
  Rows rows;
  rows.ids.assign(size, 0);
  rows.targets.assign(size, Rows::ignored);
  if (o.documents) rows.segments.assign(size, 0);
  return rows;
}

std::vector<MixtureOrder::Source> parts_of(const Corpus& corpus) {
  std::vector<MixtureOrder::Source> parts;
  for (const Corpus::Source& p : corpus.training) parts.push_back({p.source->tokens(), p.weight, p.source->in_rows()});
  return parts;
}

i64 validation_windows(const TokenSource& source, const RowsOptions& o) {
  return (source.tokens() - !source.in_rows()) / o.length;
}

}  // namespace

TrainingRows::TrainingRows(const Corpus& corpus, const RowsOptions& o)
    : options_(o), order_(parts_of(corpus), o.length, o.seed) {
  for (const Corpus::Source& p : corpus.training) sources_.push_back(p.source);
}

Rows TrainingRows::at(i64 step) const {
  Rows rows = empty_rows(options_);
  for (i64 row = 0; row < options_.batch; ++row) {
    const MixtureOrder::Start start = order_.start_of((step - 1) * options_.batch + row);
    fill(*sources_[start.source], start.first, row, options_, rows);
  }
  rows.filled = options_.batch;
  return rows;
}

i64 validation_batches(const TokenSource& source, const RowsOptions& o, i64 at_most) {
  return std::min(at_most, (validation_windows(source, o) + o.batch - 1) / o.batch);
}

Rows validation_rows(const TokenSource& source, const RowsOptions& o, i64 batches, i64 index) {
  const i64 windows = validation_windows(source, o), used = std::min(windows, batches * o.batch);
  Rows rows = empty_rows(o);
  for (i64 row = 0; row < o.batch && index * o.batch + row < used; ++row, ++rows.filled)
    fill(source, (index * o.batch + row) * windows / used * o.length, row, o, rows);
  return rows;
}

}  // namespace stretto
