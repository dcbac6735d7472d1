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

// How many of at most so many tokens a decoder reads that has `length` of them. How far longrope turns is a matter
// of how long a sequence is, not of how long it may become: beyond the context that was trained on all of it is
// read again.
i64 room_for(const ModelConfig& c, i64 length, i64 most) {
  const RopeScaling& rope = c.rope_scaling;
  const bool turns = rope.kind == RopeScaling::Kind::longrope && length <= rope.original_context;
  return turns ? std::min(most, rope.original_context) : most;
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
  const i64 most = std::min(context, length + std::max<i64>(o.tokens - 1, 0));
  std::vector<std::int32_t> read = prompt;
  std::optional<Decoder> decoder;
  decoder.emplace(m.config, m.weights, room_for(m.config, length, most), o.dtype);
  const PhiloxKey key = philox_key(o.seed, "generate");
  std::vector<double> logits;
  for (i64 n = 0; n < o.tokens; ++n) {
    if (n == 0) logits = decoder->feed(prompt);
    const std::int32_t id = sample(logits, o.sample, uniform_at(key, n));
    if (std::find(o.stop.begin(), o.stop.end(), id) != o.stop.end() || !next(id)) return n;
    if (n + 1 == o.tokens || decoder->position() == most) return n + 1;
    read.push_back(id);
    if (decoder->position() < decoder->room()) {
      logits = decoder->feed({{id}});
    } else {
      decoder.emplace(m.config, m.weights, room_for(m.config, std::ssize(read), most), o.dtype);
      logits = decoder->feed(read);
    }
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
    Codec codec{.encode = [t = *tokenizer](std::string_view text, bool with_special) {
                  return t.encode(text, with_special);
                },
                .decode = [t = *tokenizer](std::int32_t id) { return t.decode({{id}}, false, false); },
                .ends = end_ids(m.extras)};
    if (codec.ends.empty() && tokenizer->end_of_text()) codec.ends.push_back(*tokenizer->end_of_text());
    for (const std::int32_t id : tokenizer->special_ids())
      codec.special.emplace_back(tokenizer->decode(std::span(&id, 1)), id);
    return codec;
  }
  if (m.config.vocab != 256)
    throw Error("generate", "there is no tokenizer beside the weights, and a vocabulary of {} is not bytes",
                m.config.vocab)
        .hint("name one: --tokenizer FILE; or give the prompt as --ids");
  Codec bytes;
  bytes.encode = [](std::string_view text, bool) {
    std::vector<std::int32_t> ids;
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    return ids;
  };
  bytes.decode = [](std::int32_t id) { return std::string(1, char(id)); };
  bytes.ends = end_ids(m.extras);
  return bytes;
}

}  // namespace stretto
