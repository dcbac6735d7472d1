// Text -> added tokens -> pieces -> ids.
#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/formats/utf8.h"
#include "stretto/tokenize/byte_level.h"
#include "stretto/tokenize/bytes.h"
#include "stretto/tokenize/tables.h"
#include "stretto/tokenize/tokenizer.h"
#include "stretto/tokenize/word_cache.h"

namespace stretto {

namespace {
constexpr std::size_t kDrain = 1 << 16;  // ids
}

struct Encoder::State {
  explicit State(const Tokenizer& t) : tokenizer(t), tables(t.tables()) {
    for (const TokenizerTables::Step& s : tables.steps)
      searches.push_back(s.pattern ? std::optional<SplitPattern::Search>(*s.pattern) : std::nullopt);
  }

  Tokenizer tokenizer;  // keeps the tables alive
  const TokenizerTables& tables;
  std::vector<std::optional<SplitPattern::Search>> searches;  // one per step
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

  // Cuts `piece` by the steps from `step` on and calls `use` with each part.
  template <class Use>
  void cut(std::size_t step, std::string_view piece, Use& use) {
    if (piece.empty()) return;
    if (step == tables.steps.size()) return use(piece);
    if (!searches[step]) {
      if (piece[0] == ' ') return cut(step + 1, piece, use);
      const std::string longer = " " + std::string(piece);
      return cut(step + 1, longer, use);
    }
    SplitPattern::Search& search = *searches[step];
    search.start(piece);
    std::size_t done = 0, begin = 0, end = 0;
    while (search.next(begin, end)) {
      if (begin > done && tables.steps[step].keep_rest) cut(step + 1, piece.substr(done, begin - done), use);
      cut(step + 1, piece.substr(begin, end - begin), use);
      done = end;
    }
    if (tables.steps[step].keep_rest) cut(step + 1, piece.substr(done), use);
  }

  // The expressions need UTF-8. Bytes that are none are pieces of their own.
  template <class Use>
  void cut_any(std::string_view text, Use use) {
    while (!text.empty()) {
      const std::size_t good = first_bad_utf8(text).value_or(text.size());
      cut(0, text.substr(0, good), use);
      text.remove_prefix(good);
      std::size_t bad = 0;
      while (bad < text.size() && first_bad_utf8(text.substr(bad, 4)).value_or(1) == 0) ++bad;
      if (bad > 0) use(text.substr(0, bad));
      text.remove_prefix(bad);
    }
  }

  void encode(std::string_view text, std::vector<std::int32_t>& to, const Full* full = nullptr) {
    std::size_t done = 0;
    const auto drain = [&](std::size_t bytes) {
      done += bytes;
      if (!full || to.size() < kDrain) return;
      (*full)(to, std::min(done, text.size()));  // blanks that were put before pieces count too
      to.clear();
    };
    parts.clear();
    tables.added[0].split(text, parts);
    for (const AddedTokens::Stretch& p : parts) {
      if (p.id) {
        to.push_back(*p.id);
        drain(p.text.size());
        continue;
      }
      inner.clear();
      tables.added[1].split(p.text, inner);
      for (const AddedTokens::Stretch& q : inner) {
        if (q.id)
          to.push_back(*q.id);
        else
          cut_any(q.text, [&](std::string_view piece) {
            word(piece, to);
            drain(piece.size());
          });
      }
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
  state_->cut_any(text, [&](std::string_view piece) { use(piece); });
}

}  // namespace stretto
