#include "stretto/tokenize/inner/sentencepiece_text.h"

#include <algorithm>
#include <cstring>

#include "stretto/base/error.h"
#include "stretto/tokenize/inner/bytes.h"

namespace stretto {
namespace {

// A unit of a double array as darts-clone packs it.
std::size_t offset_of(std::uint32_t unit) { return std::size_t(unit >> 10) << ((unit & (1u << 9)) >> 6); }
std::uint32_t label_of(std::uint32_t unit) { return unit & ((1u << 31) | 0xFF); }
bool has_value(std::uint32_t unit) { return (unit >> 8) & 1; }
std::uint32_t value_of(std::uint32_t unit) { return unit & ((1u << 31) - 1); }

}  // namespace

SentencePieceText::SentencePieceText(const SentencePieceRules& rules, std::string_view where) : rules_(rules) {
  std::vector<PrefixTree::Entry> own;
  for (const std::string& s : rules_.user_defined)
    if (!s.empty()) own.emplace_back(s, 0);
  std::sort(own.begin(), own.end());
  own.erase(std::unique(own.begin(), own.end()), own.end());
  own_ = PrefixTree(own);
  const std::string_view map = rules_.characters;
  if (map.empty()) return;
  std::uint32_t bytes = 0;
  if (map.size() >= 4) std::memcpy(&bytes, map.data(), 4);
  if (map.size() < 8 || bytes > map.size() - 4 || bytes < 4 || bytes % 4 != 0)
    throw Error(where, "the map of characters has {} bytes, and its first part says {}", map.size(), bytes)
        .hint("the file is damaged");
  units_.resize(bytes / 4);
  std::memcpy(units_.data(), map.data() + 4, bytes);
  targets_ = map.substr(4 + bytes);
  if (targets_.empty() || targets_.back() != 0)
    throw Error(where, "the map of characters ends in the middle of a text").hint("the file is damaged");
}

// Where the longest key that the text begins with leads to, and how long it is.
std::optional<std::pair<std::uint32_t, std::size_t>> SentencePieceText::longest(std::string_view text) const {
  std::optional<std::pair<std::uint32_t, std::size_t>> found;
  if (units_.empty()) return found;
  std::size_t at = offset_of(units_[0]);
  for (std::size_t n = 0; n < text.size(); ++n) {
    at ^= byte_of(text[n]);
    if (at >= units_.size() || label_of(units_[at]) != byte_of(text[n])) break;
    const std::uint32_t unit = units_[at];
    at ^= offset_of(unit);
    if (at >= units_.size()) break;
    if (has_value(unit)) found = {value_of(units_[at]), n + 1};
  }
  return found;
}

SentencePieceText::Rewritten SentencePieceText::next(std::string_view text) const {
  std::size_t own = 0;
  own_.each(text, [&](std::int32_t, std::size_t size) { own = size; });
  if (own > 0) return {text.substr(0, own), own};
  const auto found = longest(text);
  if (found && found->first < targets_.size())
    return {std::string_view(targets_.c_str() + found->first), found->second};
  const std::size_t size = character_size(text, 0);
  return {text.substr(0, size), size};
}

std::string SentencePieceText::apply(std::string_view text, bool first) const {
  const bool trim = rules_.remove_extra_blanks;
  while (trim && !text.empty()) {
    const Rewritten s = next(text);
    if (s.out != " ") break;
    text.remove_prefix(s.size);
  }
  std::string out;
  if (text.empty()) return out;
  if (rules_.dummy_prefix && !rules_.blank_as_suffix && first) out += metaspace;
  bool after_blank = trim;
  while (!text.empty()) {
    Rewritten s = next(text);
    text.remove_prefix(s.size);
    while (after_blank && s.out.starts_with(' ')) s.out.remove_prefix(1);
    for (const char c : s.out) {
      if (c == ' ')
        out += metaspace;
      else
        out += c;
    }
    if (!s.out.empty()) after_blank = trim && s.out.ends_with(' ');
  }
  while (trim && out.ends_with(metaspace)) out.resize(out.size() - metaspace.size());
  if (rules_.dummy_prefix && rules_.blank_as_suffix) out += metaspace;
  return out;
}

}  // namespace stretto
