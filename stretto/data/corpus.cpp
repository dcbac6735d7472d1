#include "stretto/data/corpus.h"

#include <cmath>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/hash.h"
#include "stretto/base/text.h"
#include "stretto/data/chat.h"
#include "stretto/data/documents.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;
using SourcePtr = std::shared_ptr<const TokenSource>;

// Files of one kind are opened together.
enum class Kind { bytes, text, tokens, chat };

class Opener {
 public:
  explicit Opener(const CorpusOptions& o, i64 length = 0) : options_(o), length_(length) {}

  std::optional<i64> vocabulary(const std::vector<std::string>& names) const {
    if (options_.tokenizer != "bytes" && options_.tokenizer != "none") return read_tokenizer_there().vocab();
    std::vector<fs::path> files = find_files(names, options_.beside);
    std::erase_if(files, [&](const fs::path& f) { return kind_of(f) != Kind::tokens; });
    const auto largest = largest_token(files, token_format());
    return largest ? std::optional(*largest + 1) : std::nullopt;
  }

  SourcePtr open(const std::vector<std::string>& names) {
    const std::vector<fs::path> files = find_files(names, options_.beside);
    for (const fs::path& f : files) check_text(f);
    std::vector<SourcePtr> sources;
    for (std::size_t begin = 0, end = 0; begin < files.size(); begin = end) {
      const Kind kind = kind_of(files[begin]);
      while (end < files.size() && kind_of(files[end]) == kind) ++end;
      sources.push_back(open_kind(kind, {files.begin() + begin, files.begin() + end}));
    }
    SourcePtr all = sources.size() == 1 ? sources[0] : joined(std::move(sources));
    if (options_.vocab > 0 && all->vocab() > options_.vocab)
      throw Error("data", "{} has ids up to {}, and the model's vocabulary is {}", all->str(), all->vocab() - 1,
                  options_.vocab)
          .hint("use model.vocab = {} or more", all->vocab());
    return all;
  }

 private:
  Kind kind_of(const fs::path& file) const {
    const bool tokens =
        options_.format == DataFormat::automatic ? looks_like_tokens(file) : options_.format != DataFormat::text;
    if (tokens) return Kind::tokens;
    if (options_.field == messages_field) return Kind::chat;
    return options_.tokenizer == "bytes" && !has_lines(file) && !is_compressed(file) ? Kind::bytes : Kind::text;
  }

  void check_text(const fs::path& file) const {
    if (kind_of(file) == Kind::tokens) return;
    if (options_.tokenizer == "none")
      throw Error("data", "'{}' is text, and there is no tokenizer beside the weights that the model starts from",
                  file.string())
          .hint(
              "name one: data.tokenizer = \"tokenizer.json\", or \"bytes\" for bytes as tokens; or train on token "
              "files");
    if (options_.format == DataFormat::automatic) need_text(file);
  }

  SourcePtr open_kind(Kind kind, const std::vector<fs::path>& files) {
    if (kind == Kind::bytes) return open_bytes(files);
    if (kind == Kind::chat)
      return open_chat(files, tokenizer(), chat_template_for(options_.chat_template, options_.tokenizer),
                       {.length = length_, .render = {.date = options_.date}, .others = options_.others});
    if (kind == Kind::text) return open_text(files, tokenizer(), options_.field);
    TokenFilesOptions o{.format = token_format(), .vocab = options_.vocab, .documents = options_.documents};
    if (options_.documents && options_.tokenizer != "none") o.end = tokenizer().end_of_text();
    return open_token_files(files, o);
  }

  const Tokenizer& tokenizer() {
    if (!tokenizer_) tokenizer_ = read_tokenizer_there();
    return *tokenizer_;
  }
  Tokenizer read_tokenizer_there() const {
    if (options_.tokenizer != "bytes" && !is_there(options_.tokenizer))
      throw Error("data", "there is no tokenizer '{}'", options_.tokenizer)
          .hint("{}", where_names_are(options_.beside));
    return read_tokenizer(options_.tokenizer);
  }

  std::optional<TokenFormat> token_format() const {
    switch (options_.format) {
      case DataFormat::nanogpt:
        return TokenFormat::nanogpt;
      case DataFormat::llmc:
        return TokenFormat::llmc;
      case DataFormat::megatron:
        return TokenFormat::megatron;
      case DataFormat::automatic:
      case DataFormat::text:
        break;
    }
    return std::nullopt;
  }

  const CorpusOptions& options_;
  i64 length_;  // of a sequence
  std::optional<Tokenizer> tokenizer_;
};

void need_sequence(const TokenSource& source, std::string_view what, i64 length, std::string_view hint) {
  if (source.tokens() > length - source.in_rows()) return;
  throw Error("data", "{} ({}) has {} tokens, and one sequence with its targets takes {}", what, source.str(),
              source.tokens(), length + 1)
      .hint("{}", hint);
}

std::vector<std::string> all_names(const CorpusOptions& o) {
  std::vector<std::string> names = o.path;
  for (const MixturePart& p : o.mixture) names.insert(names.end(), p.path.begin(), p.path.end());
  names.insert(names.end(), o.validation_path.begin(), o.validation_path.end());
  return names;
}

// What is given and would change nothing is a misunderstanding.
void refuse_unused_template(const CorpusOptions& o) {
  if (o.field == messages_field || (o.chat_template.empty() && o.date.empty())) return;
  throw Error("data", "a {} is given ('{}'), and the data is no conversations",
              o.chat_template.empty() ? "date" : "template", o.chat_template.empty() ? o.date : o.chat_template)
      .hint("for conversations write data.field = \"{}\" in the run, or eval --field {}", messages_field,
            messages_field);
}

std::string name_of(const std::vector<Corpus::Source>& parts) {
  if (parts.size() == 1) return parts[0].source->str();
  double total = 0;
  for (const Corpus::Source& p : parts) total += p.weight;
  std::vector<std::string> names;
  for (const Corpus::Source& p : parts)
    names.push_back(fmt::format("{:.3g}% {}", 100 * p.weight / total, p.source->str()));
  return join(names, "; ");
}

}  // namespace

i64 Corpus::training_tokens() const {
  i64 tokens = 0;
  for (const Source& p : training) tokens += p.source->tokens();
  return tokens;
}

u64 Corpus::hash() const {
  constexpr i64 most_samples = 128, most_tokens = 512;
  u64 h = hash_of(training.size());
  std::vector<std::int32_t> ids;
  for (const Source& p : training) {
    const i64 tokens = p.source->tokens(), apart = std::max(tokens / most_samples, most_tokens);
    hash_into(h, tokens);
    for (i64 first = 0; first < tokens; first += apart) {
      ids.resize(std::min(most_tokens, tokens - first));
      p.source->read(first, ids);
      h = hash_bytes(ids.data(), ids.size() * sizeof ids[0], h);
    }
  }
  return h;
}

std::optional<i64> vocabulary_of(const CorpusOptions& o) { return Opener(o).vocabulary(all_names(o)); }

Corpus open_corpus(const CorpusOptions& o, i64 length) {
  Corpus c;
  if (o.field != messages_field) need_lines_for(o.field, find_files(all_names(o), o.beside));
  Opener opener(o, length);
  if (o.mixture.empty()) c.training.push_back({opener.open(o.path), 1});
  for (const MixturePart& p : o.mixture) c.training.push_back({opener.open(p.path), p.weight});
  c.name = name_of(c.training);
  if (!o.validation_path.empty()) {
    c.validation = opener.open(o.validation_path);
  } else if (o.validation > 0) {
    std::vector<SourcePtr> held_out;
    for (Corpus::Source& p : c.training) {
      const SourcePtr whole = p.source;
      const i64 unit = whole->in_rows() ? length : 1;
      const i64 tokens = std::llround(whole->tokens() / unit * o.validation) * unit;
      p.source = part_of(whole, 0, whole->tokens() - tokens);
      held_out.push_back(part_of(whole, whole->tokens() - tokens, tokens));
    }
    c.validation = held_out.size() == 1 ? held_out[0] : joined(std::move(held_out));
  }
  refuse_unused_template(o);
  for (const Corpus::Source& p : c.training)
    need_sequence(*p.source, "the training data", length,
                  "more text, a smaller data.validation or a smaller model.context");
  if (c.validation)
    need_sequence(*c.validation, "the validation data", length,
                  "more text, a larger data.validation or a smaller model.context");
  return c;
}

}  // namespace stretto
