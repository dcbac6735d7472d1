// Text -> added tokens -> pieces -> ids.
#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/text.h"
#include "stretto/formats/utf8.h"
#include "stretto/tokenize/inner/byte_level.h"
#include "stretto/tokenize/inner/bytes.h"
#include "stretto/tokenize/inner/tables.h"
#include "stretto/tokenize/inner/word_cache.h"
#include "stretto/tokenize/tokenizer.h"

namespace stretto {

namespace {
constexpr std::size_t ids_to_drain = 1 << 16;  // ids

// A long text is encoded in blocks, cut where that changes nothing: before a blank, when both sides of it give, each by
// itself, the ids of the two together. That is looked at in a window, and in a few places before a block grows.
constexpr std::size_t bytes_of_block = 1 << 20, window_bytes = 512, most_tries = 64;
constexpr std::size_t most_held = 256 << 20;  // bytes of a text in parts in which there is no such place

bool is_blank(char c) { return c == ' ' || c == '\n'; }
bool continues_character(char c) { return (byte_of(c) & 0xc0) == 0x80; }
}  // namespace

struct Encoder::State {
  explicit State(const Tokenizer& t) : tokenizer(t), tables(t.tables()), cutter(tables.steps) {}

  Tokenizer tokenizer;  // keeps the tables alive
  const TokenizerTables& tables;
  Cutter cutter;
  WordCache cache;
  std::vector<AddedTokens::Stretch> parts, inner;

  void word(std::string_view piece, std::vector<std::int32_t>& to) {
    if (tables.merges.size() == 0 && !tables.ignore_merges) return bytes(piece, to);  // nothing to remember
    if (cache.find(piece, to)) return;
    const std::size_t first = to.size();
    if (tables.ignore_merges) {
      const auto whole = tables.words.find(piece);
      if (whole != tables.words.end()) to.push_back(whole->second);
    }
    if (to.size() == first) {
      bytes(piece, to);
      tables.merges.apply(to, first);
    }
    cache.add(piece, std::span(to).subspan(first));
  }

  // Whether every byte is a token, whatever is around it.
  bool only_bytes() const {
    return tables.merges.size() == 0 && !tables.ignore_merges && !tables.characters && tables.steps.empty() &&
           !tables.normalizes() && tables.added_ids.empty();
  }

  void bytes(std::string_view piece, std::vector<std::int32_t>& to) const {
    const std::size_t first = to.size();
    to.resize(first + piece.size());
    for (std::size_t i = 0; i < piece.size(); ++i) {
      const unsigned byte = byte_of(piece[i]);
      const std::optional<std::int32_t> id = tables.byte_ids[byte];
      if (!id)
        throw Error("tokenizer", "the text has the byte 0x{:02x} (in '{}'), and the vocabulary has no token for it",
                    byte, shown(piece, 20))
            .hint("use a tokenizer whose vocabulary has all 256 bytes");
      to[first + i] = *id;
    }
  }

  // The expressions need UTF-8: good(text, first) gets what is, bad(text) the bytes between.
  template <class Good, class Bad>
  static void by_validity(std::string_view text, const Good& good, const Bad& bad) {
    for (bool first = true; !text.empty(); first = false) {
      const std::size_t valid = first_bad_utf8(text).value_or(text.size());
      if (valid > 0) good(text.substr(0, valid), first);
      text.remove_prefix(valid);
      std::size_t wrong = 0;
      while (wrong < text.size() && first_bad_utf8(text.substr(wrong, 4)).value_or(1) == 0) ++wrong;
      if (wrong > 0) bad(text.substr(0, wrong));
      text.remove_prefix(wrong);
    }
  }

  // What lies between added tokens; at_start: of the whole text. goes_on: what is before it is no added token.
  template <class Drain>
  void encode_part(std::string_view text, bool at_start, bool goes_on, std::vector<std::int32_t>& to,
                   const Drain& drain) {
    const auto good = [&](std::string_view valid, bool begins) {
      const bool first = begins && !goes_on;
      const std::string changed = tables.normalizes() ? tables.normalized(valid, first) : std::string();
      if (tables.normalizes()) valid = changed;
      inner.clear();
      tables.added[1].split(valid, inner);
      for (const AddedTokens::Stretch& q : inner) {
        if (q.id) {
          to.push_back(*q.id);
          continue;
        }
        cutter.cut(q.text, at_start && first && q.text.data() == valid.data(), [&](std::string_view piece) {
          if (tables.characters) return tables.characters->encode(piece, cache, to, drain);
          word(piece, to);
          drain(piece);
        });
      }
    };
    by_validity(text, good, [&](std::string_view bad) {
      tables.characters ? tables.characters->encode_bad(bad, to) : word(bad, to);
      drain(bad);
    });
  }

  // goes_on: there was text before it.
  void encode(std::string_view text, bool goes_on, std::vector<std::int32_t>& to, const Full* full = nullptr) {
    std::size_t done = 0;
    const auto drain = [&](std::string_view piece) {
      done += piece.size();
      if (!full || to.size() < ids_to_drain) return;
      (*full)(to, std::min(done, text.size()));  // blanks that were put before pieces count too
      to.clear();
    };
    parts.clear();
    tables.added[0].split(text, parts);
    for (const AddedTokens::Stretch& p : parts) {
      if (!p.id) {
        const bool begins = p.text.data() == text.data();
        encode_part(p.text, begins && !goes_on, begins && goes_on, to, drain);
        continue;
      }
      to.push_back(*p.id);
      drain(p.text);
    }
  }

  std::vector<std::int32_t> ids_of(std::string_view text, bool goes_on) {
    std::vector<std::int32_t> ids;
    encode(text, goes_on, ids);
    return ids;
  }

  // `text` is before and after `at`; goes_on: there was text before it.
  bool may_cut(std::string_view text, std::size_t at, bool goes_on) {
    std::size_t begin = at - std::min(at, window_bytes), end = std::min(text.size(), at + window_bytes);
    while (begin > 0 && continues_character(text[begin])) --begin;
    while (end < text.size() && continues_character(text[end])) ++end;
    goes_on = goes_on || begin > 0;
    const std::string_view window = text.substr(begin, end - begin);
    std::vector<std::int32_t> apart = ids_of(window.substr(0, at - begin), goes_on);
    const std::vector<std::int32_t> right = ids_of(window.substr(at - begin), true);
    apart.insert(apart.end(), right.begin(), right.end());
    return apart == ids_of(window, goes_on);
  }

  // Where a block of the text may end, at or after `least`; none: nowhere, as far as is known yet.
  std::optional<std::size_t> block_end(std::string_view text, std::size_t least, bool goes_on) {
    if (only_bytes()) return least;
    std::size_t tries = 0;
    for (std::size_t at = least; at + window_bytes < text.size() && tries < most_tries; ++at)
      if (is_blank(text[at]) && !is_blank(text[at - 1]) && (++tries, may_cut(text, at, goes_on))) return at;
    return std::nullopt;
  }

  // Of a text that comes in parts: what has come and is not encoded yet, how much of it was, when a block is tried for.
  std::string held;
  std::size_t done = 0, least = bytes_of_block;

  void encode_blocks(std::string_view part, bool last, const Full& full) {
    std::vector<std::int32_t> ids;
    const auto put = [&](std::string_view block) {
      const std::size_t before = done;
      const Full later = [&](std::span<const std::int32_t> some, std::size_t of_block) {
        full(some, before + of_block);
      };
      encode(block, before > 0, ids, &later);
      done += block.size();
      if (!ids.empty()) full(ids, done);
      ids.clear();
    };
    if (!held.empty()) held += part;
    std::string_view text = held.empty() ? part : held;
    while (text.size() > least + window_bytes) {
      const std::optional<std::size_t> end = block_end(text, least, done > 0);
      if (!end) {
        least *= 2;
        continue;
      }
      put(text.substr(0, *end));
      text.remove_prefix(*end);
      least = bytes_of_block;
    }
    if (last) put(text), done = 0, least = bytes_of_block;
    if (last)
      held.clear();
    else if (held.empty())
      held = text;
    else
      held.erase(0, held.size() - text.size());
    if (held.size() > most_held)
      throw Error("tokenize", "{} of the text have no place where it can be cut", human_bytes(double(held.size())))
          .hint("is it text? A blank or the end of a line is such a place");
  }
};

Encoder::Encoder(const Tokenizer& t) : state_(std::make_unique<State>(t)) {}
Encoder::~Encoder() = default;
Encoder::Encoder(Encoder&&) noexcept = default;

void Encoder::encode(std::string_view text, std::vector<std::int32_t>& to) { state_->encode(text, false, to); }

void Encoder::encode(std::string_view text, const Full& full) { state_->encode_blocks(text, true, full); }

void Encoder::encode_part(std::string_view part, bool last, const Full& full) {
  state_->encode_blocks(part, last, full);
}

void Encoder::each_piece(std::string_view text, const std::function<void(std::string_view)>& use) {
  State& s = *state_;
  const auto good = [&](std::string_view valid, bool first) {
    const std::string changed = s.tables.normalizes() ? s.tables.normalized(valid, first) : std::string();
    s.cutter.cut(s.tables.normalizes() ? changed : valid, first, use);
  };
  s.by_validity(text, good, use);
}

}  // namespace stretto
