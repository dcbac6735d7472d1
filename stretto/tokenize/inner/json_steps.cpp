#include "stretto/tokenize/inner/json_steps.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "stretto/tokenize/inner/bytes.h"
#include "stretto/tokenize/inner/json_fields.h"
#include "stretto/tokenize/inner/punctuation.h"
#include "stretto/tokenize/split_pattern.h"

namespace stretto {
namespace {

using namespace tokenizer_fields;
constexpr std::size_t most_steps = 16;
constexpr double most_growth_of_token = 1000;  // times as long as a token is

using NormalizerKind = Normalizer::Kind;
constexpr std::pair<std::string_view, NormalizerKind> plain_normalizers[] = {{"NFC", NormalizerKind::nfc},
                                                                             {"NFD", NormalizerKind::nfd},
                                                                             {"NFKC", NormalizerKind::nfkc},
                                                                             {"NFKD", NormalizerKind::nfkd},
                                                                             {"Lowercase", NormalizerKind::lowercase}};

using Matches = CutStep::Matches;
constexpr std::pair<std::string_view, Matches> behaviors[] = {{"Isolated", Matches::isolated},
                                                              {"Removed", Matches::removed},
                                                              {"MergedWithPrevious", Matches::with_previous},
                                                              {"MergedWithNext", Matches::with_next},
                                                              {"Contiguous", Matches::contiguous}};

Matches behavior_of(const Field& f, std::string_view otherwise) {
  const std::string name = there(f, "behavior") ? text(f, "behavior") : std::string(otherwise);
  for (const auto& [known, matches] : behaviors)
    if (known == name) return matches;
  throw Error(f.source.str(), "the behavior '{}' is not supported", shown(name))
      .hint("Isolated, Removed, MergedWithPrevious, MergedWithNext and Contiguous are");
}

std::string literally(std::string_view text) {
  std::string expression;
  for (const char c : text) {
    if (!(byte_of(c) & 0x80) && !std::isalnum(byte_of(c))) expression += '\\';
    expression += c;
  }
  return expression;
}

// One character as a string.
std::string replacement_of(const Field& f) {
  const std::string r = there(f, "replacement") ? text(f, "replacement") : std::string(metaspace);
  if (r.empty() || r.size() != character_size(r, 0))
    throw Error(f.source.str(), "'replacement' is '{}' and not one character", shown(r));
  return r;
}

CutStep::Prepend prepend_of(const Field& f) {
  using Prepend = CutStep::Prepend;
  if (!there(f, "prepend_scheme")) return flag(f, "add_prefix_space", true) ? Prepend::always : Prepend::never;
  const std::string scheme = text(f, "prepend_scheme");
  if (scheme == "always") return Prepend::always;
  if (scheme == "first") return Prepend::first;
  if (scheme == "never") return Prepend::never;
  throw Error(f.source.str(), "'prepend_scheme' is '{}'", shown(scheme)).hint("always, first and never are known");
}

void add_step(CutStep step, const Field& f, TokenizerParts& parts) {
  if (parts.steps.size() == most_steps)
    throw Error(f.source.str(), "the pre-tokenizer has more than {} steps", most_steps);
  parts.steps.push_back(std::move(step));
}

void read_metaspace(const Field& f, TokenizerParts& parts) {
  const std::string space = replacement_of(f);
  add_step({.space = space, .prepend = prepend_of(f)}, f, parts);
  if (flag(f, "split", true)) add_step({.pattern = literally(space), .matches = Matches::with_next}, f, parts);
}

void read_split(const Field& f, TokenizerParts& parts) {
  const Field pattern = need<Field::Table>(f, "pattern", "an object");
  add_step({.pattern = there(pattern, "Regex") ? text(pattern, "Regex") : literally(text(pattern, "String")),
            .matches = behavior_of(f, ""),
            .invert = flag(f, "invert", false)},
           f, parts);
}

bool read_cut(const Field& f, TokenizerParts& parts, bool byte_level) {
  const std::string type = text(f, "type");
  if (byte_level) throw Error(f.source.str(), "the pre-tokenizer '{}' comes after ByteLevel", shown(type));
  if (type == "Sequence") {
    for (const Field& step : need<Field::Array>(f, "pretokenizers", "a list"))
      byte_level = read_cut(step, parts, byte_level);
  } else if (type == "ByteLevel") {
    if (flag(f, "add_prefix_space", true)) add_step({.prefix_space = true}, f, parts);
    if (flag(f, "use_regex", true)) add_step({.pattern = std::string(gpt2_pattern)}, f, parts);
    byte_level = true;
  } else if (type == "Digits") {
    add_step({.pattern = flag(f, "individual_digits", false) ? "\\p{N}" : "\\p{N}+"}, f, parts);
  } else if (type == "Punctuation") {
    add_step({.pattern = std::string(punctuation_pattern), .matches = behavior_of(f, "Isolated")}, f, parts);
  } else if (type == "WhitespaceSplit") {
    add_step({.pattern = "\\s", .matches = Matches::removed}, f, parts);
  } else if (type == "Metaspace") {
    read_metaspace(f, parts);
  } else if (type == "Split") {
    read_split(f, parts);
  } else {
    refuse(f, "pre-tokenizer", "Metaspace, Split, Digits, Punctuation, WhitespaceSplit, ByteLevel, Sequence");
  }
  return byte_level;
}

int count_of(const Field& f, std::string_view key) {
  const i64 n = need<i64>(f, key, "a whole number");
  if (n < 0 || n > 1000) throw Error(f.source.str(), "'{}' is {}", key, n).hint("0 to 1000");
  return n;
}

class DecoderReader {
 public:
  explicit DecoderReader(DecodeRules& rules) : rules_(rules) {}

  void read(const Field& f) {
    const std::string type = text(f, "type");
    if (type == "Sequence") {
      for (const Field& d : need<Field::Array>(f, "decoders", "a list")) read(d);
    } else if (type == "Replace" && !fused_ && !rules_.bytes) {
      read_replace(f);
    } else if (type == "ByteFallback" && !fused_) {
      rules_.bytes = true;
    } else if (type == "Fuse") {
      fused_ = true;
    } else if (type == "Strip" && fused_ && rules_.strip.empty()) {
      rules_.strip = text(f, "content");
      if (rules_.strip.empty()) throw Error(f.source.str(), "the decoder Strip strips nothing");
      rules_.strip_start = count_of(f, "start");
      rules_.strip_stop = count_of(f, "stop");
    } else if (type == "Metaspace" && !fused_ && !rules_.bytes) {
      const std::string space = replacement_of(f);
      rules_.replace.emplace_back(space, " ");
      if (prepend_of(f) != CutStep::Prepend::never) rules_.drop_in_first = space;
    } else {
      refuse(f, "decoder", "ByteLevel, Metaspace, and Replace, ByteFallback, Fuse, Strip in this order");
    }
  }

 private:
  void read_replace(const Field& f) {
    const Field pattern = need<Field::Table>(f, "pattern", "an object");
    if (there(pattern, "Regex"))
      throw Error(f.source.str(), "a decoder that replaces an expression is not supported").hint("a String is");
    rules_.replace.emplace_back(text(pattern, "String"), text(f, "content"));
    const auto& [what, by] = rules_.replace.back();
    if (what.empty()) throw Error(f.source.str(), "the decoder Replace replaces nothing");
    growth_ *= std::max(1.0, double(by.size()) / double(what.size()));
    if (growth_ > most_growth_of_token)
      throw Error(f.source.str(), "its decoders make a token more than {} times as long", most_growth_of_token);
  }

  DecodeRules& rules_;
  double growth_ = 1;
  bool fused_ = false;
};

}  // namespace

void read_normalizer(const Field& f, TokenizerParts& parts) {
  const std::string type = text(f, "type");
  if (type == "Sequence") {
    for (const Field& n : need<Field::Array>(f, "normalizers", "a list")) read_normalizer(n, parts);
    return;
  }
  if (parts.normalizers.size() == most_steps)
    throw Error(f.source.str(), "there are more than {} normalizers", most_steps);
  for (const auto& [name, kind] : plain_normalizers)
    if (type == name) return parts.normalizers.push_back({.kind = kind});
  if (type == "Strip") {
    parts.normalizers.push_back(
        {.kind = NormalizerKind::strip, .left = flag(f, "strip_left", true), .right = flag(f, "strip_right", true)});
  } else if (type == "Prepend") {
    parts.normalizers.push_back({.kind = NormalizerKind::prepend, .text = text(f, "prepend")});
  } else if (type == "Replace") {
    const Field pattern = need<Field::Table>(f, "pattern", "an object");
    const bool expression = there(pattern, "Regex");
    parts.normalizers.push_back({.kind = NormalizerKind::replace,
                                 .pattern = text(pattern, expression ? "Regex" : "String"),
                                 .expression = expression,
                                 .text = text(f, "content")});
  } else if (type == "Precompiled") {
    throw Error(f.source.str(), "the normalizer Precompiled is not supported")
        .hint("read SentencePiece's own file instead, which usually lies beside it: tokenizer.model");
  } else {
    refuse(f, "normalizer", "NFC, NFD, NFKC, NFKD, Lowercase, Strip, Prepend, Replace, Sequence");
  }
}

bool read_pre_tokenizer(const Field& f, TokenizerParts& parts) { return read_cut(f, parts, false); }

void read_decoder(const Field& f, TokenizerParts& parts) { DecoderReader(parts.decode).read(f); }

}  // namespace stretto
