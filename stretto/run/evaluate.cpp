#include "stretto/run/evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stretto/base/clock.h"
#include "stretto/base/files.h"
#include "stretto/data/chat.h"
#include "stretto/data/sequences.h"
#include "stretto/models/family.h"
#include "stretto/tokenize/tokenizer.h"
#include "stretto/run/prepare.h"
#include "stretto/train/trainer.h"

namespace stretto {
namespace {

std::string tokenizer_of(const StoredModel& m, const EvaluateOptions& o) {
  if (!o.tokenizer.empty()) return o.tokenizer;
  for (const std::filesystem::path& folder : {m.path, m.base})
    for (const char* name : {"tokenizer.json", "tokenizer.model"})
      if (!folder.empty() && is_there(folder / name)) return (folder / name).string();
  return "bytes";
}

// Without a tokenizer that it could lie beside, the template lies beside the weights.
std::string template_of(const StoredModel& m, const EvaluateOptions& o, const std::string& tokenizer) {
  const std::filesystem::path own = m.path / "chat_template.jinja";
  return o.field == messages_field && o.chat_template.empty() && tokenizer == "bytes" && is_there(own) ? own.string()
                                                                                                      : o.chat_template;
}

std::shared_ptr<const TokenSource> open_data(const StoredModel& m, const EvaluateOptions& o,
                                             const std::string& tokenizer) {
  const Corpus corpus = open_corpus({.path = o.data,
                                     .format = o.format,
                                     .tokenizer = tokenizer,
                                     .field = o.field,
                                     .chat_template = template_of(m, o, tokenizer),
                                     .date = o.date,
                                     .vocab = m.config.vocab,
                                     .documents = o.documents},
                                    m.config.context);
  std::shared_ptr<const TokenSource> source = corpus.training.front().source;
  if (tokenizer == "bytes" && source->vocab() == 256 && m.config.vocab != 256)
    throw Error(
        "eval",
        "the data is text, the model's vocabulary of {} is not bytes, and there is no tokenizer beside its weights",
        m.config.vocab)
        .hint("give --tokenizer FILE, or data that is tokens");
  return source;
}

// Bytes of text per token; none: nobody knows. A token that stands for no text, such as the end of one, has none.
class TextBytes {
 public:
  TextBytes(const std::string& tokenizer, const TokenSource& source)
      : bytes_(tokenizer == "bytes" && source.vocab() == 256) {
    if (tokenizer != "bytes") tokenizer_ = read_tokenizer(tokenizer);
  }
  std::optional<i64> of(std::span<const std::int32_t> ids) const {
    if (bytes_) return std::ranges::count_if(ids, [](std::int32_t id) { return id >= 0; });
    if (!tokenizer_) return std::nullopt;
    std::vector<std::int32_t> known;
    std::ranges::copy_if(ids, std::back_inserter(known),
                         [&](std::int32_t id) { return id >= 0 && id < tokenizer_->vocab(); });
    return std::ssize(tokenizer_->decode(known, false, false));
  }

 private:
  bool bytes_;
  std::optional<Tokenizer> tokenizer_;
};

Trainer forward_of(const StoredModel& m, const EvaluateOptions& o) {
  ModelConfig config = m.config;
  config.documents = o.documents;
  const DType dtype = m.weights.empty() ? f32 : m.weights.begin()->second.dtype;
  Compiled c =
      compile_forward(make_model(config, o.batch), {.microbatches = o.microbatches, .dtype = dtype}, o.parallel);
  check_fits(planned_bytes(*c.program), machine_bytes(), "fewer rows at a time: --batch");
  Trainer t(std::move(c), o.run);
  for (const auto& [name, weights] : m.weights) t.set_parameter(name, weights);
  return t;
}

}  // namespace

double Evaluated::perplexity() const { return std::exp(loss); }

std::optional<double> Evaluated::bits_per_byte() const {
  if (!bytes || *bytes == 0) return std::nullopt;
  return loss * static_cast<double>(tokens) / std::log(2.0) / static_cast<double>(*bytes);
}

Evaluated evaluate(const StoredModel& m, const EvaluateOptions& asked) {
  EvaluateOptions o = asked;
  if (o.field == messages_field) o.documents = true;
  const std::string tokenizer = tokenizer_of(m, o);
  const std::shared_ptr<const TokenSource> source = open_data(m, o, tokenizer);
  const TextBytes text(tokenizer, *source);
  const RowsOptions rows{.length = m.config.context, .batch = o.batch, .documents = o.documents};
  const i64 batches = validation_batches(*source, rows, o.batches > 0 ? o.batches : std::numeric_limits<i64>::max());
  Trainer trainer = forward_of(m, o);
  const std::string term = trainer.compiled().terms.list().front().name;
  Evaluated e{.bytes = 0, .data = source->str()};
  const double start = now();
  double sum = 0;
  for (i64 i = 0; i < batches; ++i) {
    const Rows r = validation_rows(*source, rows, batches, i);
    const i64 tokens = std::ranges::count_if(r.targets, [](std::int32_t id) { return id != Rows::ignored; });
    sum += trainer.evaluate(batch_of(rows, r)).metrics.at(term) * static_cast<double>(tokens);
    e.tokens += tokens;
    const std::optional<i64> bytes = text.of(std::span(r.targets).first(r.filled * rows.length));
    if (!bytes) e.bytes.reset();
    if (e.bytes) *e.bytes += *bytes;
    if (o.progress) o.progress(i + 1, batches);
  }
  e.loss = sum / static_cast<double>(e.tokens);
  e.seconds = now() - start;
  return e;
}

}  // namespace stretto
