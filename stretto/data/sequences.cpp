#include "stretto/data/sequences.h"

#include <algorithm>
#include <cmath>

#include "stretto/base/error.h"
#include "stretto/data/order.h"

namespace stretto {
namespace {

void need_sequence(const TokenSource& source, std::string_view what, i64 length, std::string_view hint) {
  if (source.tokens() > length) return;
  throw Error("data", "{} ({}) has {} tokens, and one sequence with its targets takes {}", what, source.str(),
              source.tokens(), length + 1)
      .hint("{}", hint);
}

// Reads length + 1 tokens: what follows a token is its target.
void fill(const TokenSource& source, i64 first, i64 row, i64 length, Rows& rows) {
  std::vector<std::int32_t> tokens(std::size_t(length) + 1);
  source.read(first, tokens);
  std::copy(tokens.begin(), tokens.end() - 1, rows.ids.begin() + row * length);
  std::copy(tokens.begin() + 1, tokens.end(), rows.targets.begin() + row * length);
}

Rows empty_rows(const RowsOptions& o) {
  Rows rows;
  rows.ids.assign(std::size_t(o.batch * o.length), 0);
  rows.targets.assign(std::size_t(o.batch * o.length), Rows::ignored);
  return rows;
}

i64 validation_windows(const TokenSource& source, const RowsOptions& o) { return (source.tokens() - 1) / o.length; }

}  // namespace

Corpus open_corpus(const CorpusOptions& o, i64 length) {
  Corpus c;
  const auto whole = open_bytes(find_files(o.path));
  c.name = whole->str();
  c.training = whole;
  if (!o.validation_path.empty()) {
    c.validation = open_bytes(find_files(o.validation_path));
  } else if (o.validation > 0) {
    const i64 held_out = i64(std::llround(double(whole->tokens()) * o.validation));
    c.training = part_of(whole, 0, whole->tokens() - held_out);
    c.validation = part_of(whole, whole->tokens() - held_out, held_out);
  }
  need_sequence(*c.training, "the training data", length,
                "more text, a smaller data.validation or a smaller model.context");
  if (c.validation)
    need_sequence(*c.validation, "the validation data", length,
                  "more text, a larger data.validation or a smaller model.context");
  return c;
}

Rows training_rows(const TokenSource& source, const RowsOptions& o, i64 step) {
  const Order order(source.tokens(), o.length, o.seed);
  Rows rows = empty_rows(o);
  for (i64 row = 0; row < o.batch; ++row)
    fill(source, order.first_token((step - 1) * o.batch + row), row, o.length, rows);
  rows.filled = o.batch;
  return rows;
}

i64 validation_batches(const TokenSource& source, const RowsOptions& o, i64 at_most) {
  return std::min(at_most, (validation_windows(source, o) + o.batch - 1) / o.batch);
}

Rows validation_rows(const TokenSource& source, const RowsOptions& o, i64 batches, i64 index) {
  const i64 windows = validation_windows(source, o), used = std::min(windows, batches * o.batch);
  Rows rows = empty_rows(o);
  for (i64 row = 0; row < o.batch && index * o.batch + row < used; ++row, ++rows.filled)
    fill(source, (index * o.batch + row) * windows / used * o.length, row, o.length, rows);
  return rows;
}

}  // namespace stretto
