#include "stretto/generate/generate.h"

#include <algorithm>

#include "stretto/base/philox.h"
#include "stretto/generate/inner/decoder.h"
#include "stretto/tokenize/tokenizer.h"

namespace stretto {
namespace {

const std::string* extra(const StoredModel& m, std::string_view name) {
  for (const Snapshot::Extra& e : m.extras)
    if (e.name == name) return &e.text;
  return nullptr;
}

std::optional<Tokenizer> tokenizer_of(const StoredModel& m, const std::string& named) {
  if (!named.empty()) return read_tokenizer(named);
  for (const char* name : {"tokenizer.json", "tokenizer.model"}) {
    const std::string* content = extra(m, name);
    if (!content) continue;
    const std::string file = (m.path / name).string();
    return Tokenizer(parse_tokenizer(*content, file), file);
  }
  return std::nullopt;
}

}  // namespace

i64 generate(const StoredModel& m, const std::vector<std::int32_t>& prompt, const GenerateOptions& o,
             const std::function<bool(std::int32_t)>& next) {
  check(o.sample);
  if (o.tokens < 0) throw Error("generate", "{} tokens are asked for", o.tokens).hint("use 0 or more");
  if (prompt.empty()) throw Error("generate", "the prompt is empty").hint("give a token to go on from");
  const i64 context = m.config.context, length = std::ssize(prompt);
  if (length > context)
    throw Error("generate", "the prompt has {} tokens and the model's context is {}", length, context)
        .hint("shorten the prompt");
  // The last token that is generated need not be read.
  Decoder decoder(m.config, m.weights, std::min(context, length + std::max<i64>(o.tokens - 1, 0)), o.dtype);
  const PhiloxKey key = philox_key(o.seed, "generate");
  std::vector<double> logits;
  for (i64 n = 0; n < o.tokens; ++n) {
    if (n == 0) logits = decoder.feed(prompt);
    const std::int32_t id = sample(logits, o.sample, uniform_at(key, n));
    if (std::find(o.stop.begin(), o.stop.end(), id) != o.stop.end() || !next(id)) return n;
    if (n + 1 == o.tokens || decoder.position() == decoder.room()) return n + 1;
    logits = decoder.feed({{id}});
  }
  return 0;
}

Codec codec_of(const StoredModel& m, const std::string& named) {
  if (const auto tokenizer = tokenizer_of(m, named)) {
    if (tokenizer->vocab() > m.config.vocab)
      throw Error(named.empty() ? m.path.string() : named,
                  "the tokenizer has ids up to {}, and the model's vocabulary is {}", tokenizer->vocab() - 1,
                  m.config.vocab)
          .hint("give the prompt as --ids, or name the tokenizer of this model: --tokenizer FILE");
    Codec codec{.encode = [t = *tokenizer](std::string_view text) { return t.encode(text, true); },
                .decode = [t = *tokenizer](std::int32_t id) { return t.decode({{id}}, false, false); },
                .ends = end_ids(m.extras)};
    if (codec.ends.empty() && tokenizer->end_of_text()) codec.ends.push_back(*tokenizer->end_of_text());
    return codec;
  }
  if (m.config.vocab != 256)
    throw Error("generate", "there is no tokenizer beside the weights, and a vocabulary of {} is not bytes",
                m.config.vocab)
        .hint("name one: --tokenizer FILE; or give the prompt as --ids");
  Codec bytes;
  bytes.encode = [](std::string_view text) {
    std::vector<std::int32_t> ids;
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    return ids;
  };
  bytes.decode = [](std::int32_t id) { return std::string(1, char(id)); };
  bytes.ends = end_ids(m.extras);
  return bytes;
}

}  // namespace stretto
