// Text -> added tokens -> pieces -> ids.
#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/formats/utf8.h"
#include "stretto/tokenize/inner/byte_level.h"
#include "stretto/tokenize/inner/bytes.h"
#include "stretto/tokenize/inner/tables.h"
#include "stretto/tokenize/tokenizer.h"
#include "stretto/tokenize/inner/word_cache.h"

namespace stretto {

namespace {
constexpr std::size_t ids_to_drain = 1 << 16;  // ids
}

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

  // What lies between added tokens; at_start: of the whole text.
  template <class Drain>
  void encode_part(std::string_view text, bool at_start, std::vector<std::int32_t>& to, const Drain& drain) {
    const auto good = [&](std::string_view valid, bool first) {
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

  void encode(std::string_view text, std::vector<std::int32_t>& to, const Full* full = nullptr) {
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
        encode_part(p.text, p.text.data() == text.data(), to, drain);
        continue;
      }
      to.push_back(*p.id);
      drain(p.text);
    }
  }
};

Encoder::Encoder(const Tokenizer& t) : state_(std::make_unique<State>(t)) {}
Encoder::~Encoder() = default;
Encoder::Encoder(Encoder&&) noexcept = default;

void Encoder::encode(std::string_view text, std::vector<std::int32_t>& to) { state_->encode(text, to); }

void Encoder::encode(std::string_view text, const Full& full) {
  std::vector<std::int32_t> ids;
  state_->encode(text, ids, &full);
  if (!ids.empty()) full(ids, text.size());
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
