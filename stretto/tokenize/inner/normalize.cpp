#include "stretto/tokenize/inner/normalize.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <new>

#include "stretto/base/error.h"
#include "stretto/formats/utf8.h"
#include "stretto/tokenize/inner/bytes.h"

namespace stretto {
namespace {

using Kind = Normalizer::Kind;
constexpr std::size_t block_bytes = 4096;
constexpr double most_growth_of_text = 1000;  // times as long as the text was

// How many times as long a text may be afterwards, but for letters that take more bytes in another form.
double growth_of(const Normalizer& n) {
  if (n.kind == Kind::prepend) return double(1 + n.text.size());
  if (n.kind != Kind::replace) return 1;
  return std::max(1.0, double(n.text.size()) / double(n.expression ? 1 : n.pattern.size()));
}

int form_of(Kind kind) {
  const int form = kind == Kind::nfc || kind == Kind::nfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  return UTF8PROC_STABLE | form | (kind == Kind::nfkc || kind == Kind::nfkd ? UTF8PROC_COMPAT : 0);
}

// No ASCII character joins with what stands before it, so that blocks which end before one are independent.
std::size_t block_end(std::string_view text, std::size_t at) {
  at = std::min(at + block_bytes, text.size());
  while (at < text.size() && byte_of(text[at]) >= 0x80) ++at;
  return at;
}

// Younger than the tables of the tokenizers library, which neither takes them apart nor changes their order. Ascending.
struct Points {
  std::uint32_t first, last;
};
constexpr Points unknown_there[] = {
    {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},     {0xC3C, 0xC3C},
    {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0x1715, 0x1715},   {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},
    {0x32FF, 0x32FF},   {0xA7F2, 0xA7F4},   {0xA82C, 0xA82C},   {0xAB69, 0xAB69},   {0x10781, 0x107BA},
    {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50}, {0x10F82, 0x10F85},
    {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x11839, 0x1183A}, {0x11938, 0x11938},
    {0x1193D, 0x1193E}, {0x11943, 0x11943}, {0x119E0, 0x119E0}, {0x11A34, 0x11A34}, {0x11A47, 0x11A47},
    {0x11A99, 0x11A99}, {0x11D42, 0x11D42}, {0x11D44, 0x11D45}, {0x11D97, 0x11D97}, {0x11F41, 0x11F42},
    {0x16FF0, 0x16FF1}, {0x1E030, 0x1E06D}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE},
    {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF}, {0x1F16C, 0x1F16C}, {0x1FBF0, 0x1FBF9}};

// Where the next of them begins, or the end.
std::size_t next_unknown(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const std::size_t size = character_size(text, at);
    const std::uint32_t point = code_point(text.substr(at, size));
    const auto after = std::upper_bound(std::begin(unknown_there), std::end(unknown_there), point,
                                        [](std::uint32_t p, const Points& range) { return p < range.first; });
    if (after != std::begin(unknown_there) && point <= std::prev(after)->last) break;
    at += size;
  }
  return at;
}

void append_in_form(std::string& out, std::string_view text, Kind kind) {
  if (text.empty()) return;
  utf8proc_uint8_t* made = nullptr;
  const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), std::ssize(text), &made,
                                 static_cast<utf8proc_option_t>(form_of(kind)));
  if (size < 0) throw std::bad_alloc();
  out.append(reinterpret_cast<const char*>(made), size);
  std::free(made);
}

std::string in_form(std::string_view text, Kind kind) {
  std::string out;
  out.reserve(text.size());
  const unsigned same = kind == Kind::nfc ? 0xCC : 0x80;  // NFC leaves everything below U+0300 alone
  for (std::size_t at = 0, end = 0; at < text.size(); at = end) {
    end = block_end(text, at);
    const std::string_view block = text.substr(at, end - at);
    if (std::none_of(block.begin(), block.end(), [&](char c) { return byte_of(c) >= same; })) {
      out += block;
      continue;
    }
    for (std::size_t from = 0; from < block.size();) {
      const std::size_t to = next_unknown(block, from);
      append_in_form(out, block.substr(from, to - from), kind);
      const std::size_t alone = to < block.size() ? character_size(block, to) : 0;
      out += block.substr(to, alone);
      from = to + alone;
    }
  }
  return out;
}

// Of Unicode 16 and 17, which utf8proc of Debian 12 does not know.
struct NewerCase {
  std::uint32_t first, last, lower;
};
constexpr NewerCase newer_cases[] = {{0x1C89, 0x1C89, 0x1C8A},   {0xA7CB, 0xA7CB, 0x264},  {0xA7CC, 0xA7CC, 0xA7CD},
                                     {0xA7DA, 0xA7DA, 0xA7DB},   {0xA7DC, 0xA7DC, 0x19B},  {0x10D50, 0x10D65, 0x10D70},
                                     {0xA7CE, 0xA7CE, 0xA7CF},   {0xA7D2, 0xA7D2, 0xA7D3}, {0xA7D4, 0xA7D4, 0xA7D5},
                                     {0x16EA0, 0x16EB8, 0x16EBB}};

std::uint32_t lower_of(std::uint32_t point) {
  for (const NewerCase& n : newer_cases)
    if (point >= n.first && point <= n.last) return n.lower + (point - n.first);
  return utf8proc_tolower(point);
}

std::string lowercase(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view character = text.substr(at, character_size(text, at));
    const std::uint32_t point = code_point(character);
    append_utf8(out, point == 0x130 ? 'i' : lower_of(point));
    if (point == 0x130) append_utf8(out, 0x307);  // the only letter that becomes two
    at += character.size();
  }
  return out;
}

bool is_space(std::uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

std::string_view strip(std::string_view text, bool left, bool right) {
  while (left && !text.empty()) {
    const std::size_t size = character_size(text, 0);
    if (!is_space(code_point(text.substr(0, size)))) break;
    text.remove_prefix(size);
  }
  while (right && !text.empty()) {
    std::size_t at = text.size() - 1;
    while (at > 0 && inside_character(text[at])) --at;
    if (!is_space(code_point(text.substr(at)))) break;
    text.remove_suffix(text.size() - at);
  }
  return text;
}

std::string replaced(std::string_view text, std::string_view what, std::string_view by) {
  std::string out;
  std::size_t done = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, done)) {
    out.append(text.substr(done, at - done)).append(by);
    done = at + what.size();
  }
  return out.append(text.substr(done));
}

std::string replaced(std::string_view text, const SplitPattern& what, std::string_view by) {
  std::string out;
  SplitPattern::Search search(what);
  search.start(text);
  std::size_t done = 0, begin = 0, end = 0;
  while (search.next(begin, end)) {
    out.append(text.substr(done, begin - done)).append(by);
    done = end;
  }
  return out.append(text.substr(done));
}

}  // namespace

TextNormalizer::TextNormalizer(const std::vector<Normalizer>& all, std::string_view where) {
  double growth = 1;
  for (const Normalizer& n : all) {
    if (n.kind == Kind::replace && n.pattern.empty()) throw Error(where, "the normalizer Replace replaces nothing");
    if ((growth *= growth_of(n)) > most_growth_of_text)
      throw Error(where, "its normalizers make a text more than {} times as long", most_growth_of_text);
    const bool expression = n.kind == Kind::replace && n.expression;
    rules_.push_back({n, expression ? std::optional(SplitPattern(n.pattern, where)) : std::nullopt});
  }
}

std::string TextNormalizer::apply(std::string_view text, bool first) const {
  std::string now(text);
  for (const Rule& s : rules_) {
    const Normalizer& n = s.what;
    if (n.kind == Kind::prepend)
      now = first && !now.empty() ? n.text + now : now;
    else if (n.kind == Kind::replace)
      now = s.expression ? replaced(now, *s.expression, n.text) : replaced(now, n.pattern, n.text);
    else if (n.kind == Kind::lowercase)
      now = lowercase(now);
    else if (n.kind == Kind::strip)
      now = std::string(strip(now, n.left, n.right));
    else
      now = in_form(now, n.kind);
  }
  return now;
}

}  // namespace stretto
