#include "stretto/tokenize/added_tokens.h"

#include <algorithm>
#include <optional>

#include "stretto/tokenize/inner/bytes.h"
#include "stretto/tokenize/split_pattern.h"

namespace stretto {
namespace {

bool matches(const SplitPattern& pattern, std::string_view text, std::size_t& begin, std::size_t& end) {
  SplitPattern::Search search(pattern);
  search.start(text);
  return search.next(begin, end) && end > begin;
}

std::size_t character_before(std::string_view text, std::size_t at) {
  do --at;
  while (at > 0 && inside_character(text[at]));
  return at;
}

std::string_view character_at(std::string_view text, std::size_t at) {
  std::size_t end = at + 1;
  while (end < text.size() && inside_character(text[end])) ++end;
  return text.substr(at, end - at);
}

bool is(const SplitPattern& kind, std::string_view character) {
  std::size_t begin = 0, end = 0;
  return matches(kind, character, begin, end);
}

// Their own expressions, so that blanks and letters are the same as in a split.
const SplitPattern& blank() {
  static const SplitPattern p("\\s", "added tokens");
  return p;
}
const SplitPattern& word() {
  static const SplitPattern p(
      R"([\p{L}\p{Nl}\p{M}\p{Nd}\p{Pc}\x{200C}\x{200D}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189}])",
      "added tokens");
  return p;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::erase_if(tokens_, [](const AddedToken& t) { return t.text.empty(); });
  std::sort(tokens_.begin(), tokens_.end(), [](const AddedToken& a, const AddedToken& b) { return a.text < b.text; });
  for (const AddedToken& t : tokens_) first_[byte_of(t.text[0])] = true;
  if (std::count(first_.begin(), first_.end(), true) == 1)
    only_ = std::find(first_.begin(), first_.end(), true) - first_.begin();
}

std::size_t AddedTokens::candidate(std::string_view text, std::size_t from) const {
  if (from >= text.size()) return text.npos;
  if (only_) {
    return text.find(*only_, from);
  }
  for (; from < text.size(); ++from)
    if (first_[byte_of(text[from])]) return from;
  return text.npos;
}

// The tokens that agree with the text so far are a range of the sorted list; one whole token is the first of it.
const AddedToken* AddedTokens::at(std::string_view text, std::size_t position) const {
  auto low = tokens_.begin(), high = tokens_.end();
  const AddedToken* found = nullptr;
  for (std::size_t n = 0; low != high && position + n < text.size(); ++n) {
    const int c = byte_of(text[position + n]);
    const auto byte = [n](const AddedToken& t) {  // none, before all bytes: the token ends here
      return n < t.text.size() ? std::optional<int>(byte_of(t.text[n])) : std::nullopt;
    };
    low = std::partition_point(low, high, [&](const AddedToken& t) { return byte(t) < c; });
    high = std::partition_point(low, high, [&](const AddedToken& t) { return byte(t) <= c; });
    if (low != high && low->text.size() == n + 1) found = &*low;
  }
  return found;
}

void AddedTokens::split(std::string_view text, std::vector<Stretch>& to) const {
  std::size_t done = 0;  // everything before is in `to`
  for (std::size_t at = candidate(text, 0); at != text.npos;) {
    const AddedToken* token = this->at(text, at);
    if (!token) {
      at = candidate(text, at + 1);
      continue;
    }
    std::size_t begin = at, end = at + token->text.size();
    at = candidate(text, end);
    if (token->single_word && ((begin > 0 && is(word(), character_at(text, character_before(text, begin)))) ||
                               (end < text.size() && is(word(), character_at(text, end)))))
      continue;
    while (token->lstrip && begin > done) {
      const std::size_t before = character_before(text, begin);
      if (before < done || !is(blank(), character_at(text, before))) break;
      begin = before;
    }
    while (token->rstrip && end < text.size() && is(blank(), character_at(text, end)))
      end += character_at(text, end).size();
    if (begin < done) continue;  // blanks that the last one took
    if (begin > done) to.push_back({text.substr(done, begin - done)});
    to.push_back({text.substr(begin, end - begin), token->id});
    done = end;
    at = candidate(text, end);
  }
  if (done < text.size()) to.push_back({text.substr(done)});
}

}  // namespace stretto
