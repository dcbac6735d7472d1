#include "stretto/tokenize/tokenizer.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "stretto/base/error.h"
#include "stretto/base/text.h"
#include "stretto/formats/utf8.h"
#include "stretto/tokenize/inner/byte_level.h"
#include "stretto/tokenize/inner/bytes.h"
#include "stretto/tokenize/inner/tables.h"

namespace stretto {
namespace {

// Ids are positions in a table, so that absurd ones must not make it absurdly large.
void check_ids(const TokenizerParts& parts, std::string_view where) {
  const i64 most = 4 * (parts.vocab.size() + parts.added.size()) + 65536;
  const auto check = [&](const std::string& token, std::int32_t id) {
    if (id < 0 || id >= most)
      throw Error(where, "token '{}' has the id {}; with {} tokens ids go from 0 to {}", shown(token), id,
                  parts.vocab.size() + parts.added.size(), most - 1);
  };
  for (const auto& [token, id] : parts.vocab) check(token, id);
  for (const AddedToken& t : parts.added) check(t.text, t.id);
}

class TableMaker {
 public:
  TableMaker(const TokenizerParts& parts, std::string_view where) : parts_(parts), where_(where) {}

  std::shared_ptr<const TokenizerTables> make() {
    if (parts_.vocab.empty()) throw Error(where_, "the vocabulary is empty");
    check_ids(parts_, where_);
    t_->normalizer = TextNormalizer(parts_.normalizers, where_);
    if (parts_.sentencepiece) t_->sentencepiece.emplace(*parts_.sentencepiece, where_);
    t_->decode = parts_.decode;
    add_vocab();
    add_added();
    if (byte_level_) {
      add_words();
      add_merges();
    } else {
      t_->characters.emplace(parts_, where_);
    }
    for (const CutStep& s : parts_.steps)
      t_->steps.push_back(
          {s, s.prefix_space || !s.space.empty() ? std::optional<SplitPattern>() : SplitPattern(s.pattern, where_)});
    for (const auto* ids : {&parts_.before, &parts_.after})
      for (const std::int32_t id : *ids)
        if (id < 0 || id >= t_->vocab() || !t_->tokens[id].there)
          throw Error(where_, "the post-processor adds the id {}, which no token has", id);
    t_->before = parts_.before;
    t_->after = parts_.after;
    t_->ignore_merges = parts_.ignore_merges;
    return t_;
  }

 private:
  TokenizerTables::Token& claim(const std::string& token, std::int32_t id) {
    if (id >= t_->vocab()) t_->tokens.resize(id + 1);
    TokenizerTables::Token& slot = t_->tokens[id];
    if (slot.there)
      throw Error(where_, "the tokens '{}' and '{}' both have the id {}", shown(to_byte_level(t_->text_of(id))),
                  shown(token), id);
    slot.there = true;
    return slot;
  }

  void put(TokenizerTables::Token& slot, std::string_view bytes) {
    slot.begin = t_->bytes.size();
    slot.size = bytes.size();
    t_->bytes += bytes;
  }

  // How a token of another kind is shown.
  std::string text_of(std::string token, std::int32_t id) const {
    const DecodeRules& d = parts_.decode;
    if (d.unknown && parts_.unknown == id) return *d.unknown;
    if (const auto byte = d.bytes ? byte_of_token(token) : std::nullopt) return std::string(1, char(*byte));
    for (const auto& [what, by] : d.replace)
      for (std::size_t at = 0; (at = token.find(what, at)) != token.npos; at += by.size())
        token.replace(at, what.size(), by);
    return token;
  }

  void put_text(TokenizerTables::Token& slot, const std::string& token, std::int32_t id) {
    put(slot, text_of(token, id));
    const std::string &start = parts_.decode.drop_at_start, &drop = parts_.decode.drop_in_first;
    if (!start.empty() && token.starts_with(start)) t_->first_texts[id] = text_of(token.substr(start.size()), id);
    if (drop.empty() || token.find(drop) == token.npos) return;
    std::string first = token;
    for (std::size_t at = 0; (at = first.find(drop, at)) != first.npos;) first.erase(at, drop.size());
    t_->first_texts[id] = text_of(first, id);
  }

  void add_vocab() {
    ids_.reserve(parts_.vocab.size());
    for (const auto& [token, id] : parts_.vocab) {
      // As the tokenizers library does it: of unigram tokens that are there twice the last one counts.
      const bool may_repeat = parts_.model == TokenizerParts::Model::unigram && !parts_.sentencepiece;
      if (!ids_.insert_or_assign(token, id).second && !may_repeat)
        throw Error(where_, "the token '{}' is there twice", shown(token));
      TokenizerTables::Token& slot = claim(token, id);
      if (!byte_level_) {
        put_text(slot, token, id);
        continue;
      }
      const auto bytes = from_byte_level(token);
      slot.word = bytes && !bytes->empty();
      put(slot, bytes ? *bytes : token);
      if (bytes && bytes->size() == 1) t_->byte_ids[byte_of((*bytes)[0])] = id;
    }
  }

  void add_added() {
    std::vector<AddedToken> plain, normalized;
    for (const AddedToken& a : parts_.added) {
      const auto known = ids_.find(a.text);
      if (known != ids_.end() && known->second != a.id)
        throw Error(where_, "the added token '{}' has the id {} and, in the vocabulary, {}", shown(a.text), a.id,
                    known->second);
      if (known == ids_.end() && byte_level_) {
        const auto bytes = from_byte_level(a.text);
        put(claim(a.text, a.id), bytes ? *bytes : a.text);
      } else if (known == ids_.end()) {
        put_text(claim(a.text, a.id), a.text, a.id);
      }
      t_->tokens[a.id].special = a.special;
      t_->added_ids.emplace(a.text, a.id);
      if (!a.in_text) continue;
      (a.normalized ? normalized : plain).push_back(a);
      if (a.normalized && !t_->normalizer.empty()) normalized.back().text = t_->normalizer.apply(a.text, true);
    }
    t_->added = {AddedTokens(std::move(plain)), AddedTokens(std::move(normalized))};
  }

  void add_words() {  // when `bytes` has stopped growing
    t_->words.reserve(t_->tokens.size());
    for (std::int32_t id = 0; id < t_->vocab(); ++id)
      if (t_->tokens[id].word) t_->words.emplace(t_->text_of(id), id);
  }

  std::int32_t id_in_merge(const std::string& token, std::size_t rank) const {
    const auto found = ids_.find(token);
    if (found == ids_.end())
      throw Error(where_, "merge {} ('{}' with '{}') needs the token '{}', which is not in the vocabulary", rank,
                  shown(parts_.merges[rank].first), shown(parts_.merges[rank].second), shown(token));
    return found->second;
  }

  void add_merges() {
    t_->merges.reserve(parts_.merges.size());
    for (std::size_t rank = 0; rank < parts_.merges.size(); ++rank) {
      const auto& [left, right] = parts_.merges[rank];
      t_->merges.add(id_in_merge(left, rank), id_in_merge(right, rank), rank, id_in_merge(left + right, rank));
    }
  }

  const TokenizerParts& parts_;
  std::string_view where_;
  const bool byte_level_ = parts_.model == TokenizerParts::Model::bytes;
  std::shared_ptr<TokenizerTables> t_ = std::make_shared<TokenizerTables>();
  std::unordered_map<std::string_view, std::int32_t> ids_;
};

void check(const TokenizerTables& t, std::int32_t id) {
  if (id < 0 || id >= t.vocab() || !t.tokens[id].there)
    throw Error("tokenizer", "the id {} stands for nothing in a vocabulary of {}", id, t.vocab())
        .hint("were the ids made with another tokenizer?");
}

}  // namespace

Tokenizer::Tokenizer(const TokenizerParts& parts, std::string_view where) : tables_(TableMaker(parts, where).make()) {}

Tokenizer Tokenizer::bytes() {
  TokenizerParts parts;
  for (int b = 0; b < 256; ++b) {
    const char byte = char(b);
    parts.vocab.emplace_back(to_byte_level({&byte, 1}), b);
  }
  return Tokenizer(parts, "bytes");
}

i64 Tokenizer::vocab() const { return tables_->vocab(); }

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, bool with_special) const {
  std::vector<std::int32_t> ids;
  if (with_special) ids = tables_->before;
  Encoder(*this).encode(text, ids);
  if (with_special) ids.insert(ids.end(), tables_->after.begin(), tables_->after.end());
  return ids;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool with_special, bool whole) const {
  std::string text;
  bool first = whole;
  for (const std::int32_t id : ids) {
    check(*tables_, id);
    if (!with_special && tables_->tokens[id].special) continue;
    const auto other = first ? tables_->first_texts.find(id) : tables_->first_texts.end();
    text += other != tables_->first_texts.end() ? std::string_view(other->second) : tables_->text_of(id);
    first = first && tables_->decode.drop_until_text && text.empty();
  }
  const DecodeRules& d = tables_->decode;
  if (!whole) return text;
  for (int n = 0; n < d.strip_start && text.starts_with(d.strip); ++n) text.erase(0, d.strip.size());
  for (int n = 0; n < d.strip_stop && text.ends_with(d.strip); ++n) text.resize(text.size() - d.strip.size());
  return text;
}

std::optional<std::int32_t> Tokenizer::id_of(std::string_view token) const {
  if (const auto found = tables_->added_ids.find(std::string(token)); found != tables_->added_ids.end())
    return found->second;
  if (tables_->characters) return tables_->characters->id_of(token);
  const auto found = tables_->words.find(token);
  return found == tables_->words.end() ? std::optional<std::int32_t>() : found->second;
}

std::vector<std::int32_t> Tokenizer::special_ids() const {
  std::vector<std::int32_t> all;
  for (std::int32_t id = 0; id < std::ssize(tables_->tokens); ++id)
    if (tables_->tokens[id].special) all.push_back(id);
  return all;
}

std::optional<std::int32_t> Tokenizer::end_of_text() const {
  for (const char* name : {"<|endoftext|>", "<|end_of_text|>", "<|eot|>", "</s>", "<eos>"})
    if (const auto found = tables_->added_ids.find(name); found != tables_->added_ids.end()) return found->second;
  return std::nullopt;
}

}  // namespace stretto
