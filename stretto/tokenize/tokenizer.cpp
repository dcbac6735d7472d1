#include "stretto/tokenize/tokenizer.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "stretto/base/error.h"
#include "stretto/base/text.h"
#include "stretto/formats/utf8.h"
#include "stretto/tokenize/byte_level.h"
#include "stretto/tokenize/bytes.h"
#include "stretto/tokenize/tables.h"

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
    add_vocab();
    add_added();
    add_words();
    add_merges();
    for (const TokenizerParts::Step& s : parts_.steps)
      t_->steps.push_back(
          {s.prefix_space ? std::optional<SplitPattern>() : SplitPattern(s.pattern, where_), s.keep_rest});
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

  void add_vocab() {
    ids_.reserve(parts_.vocab.size());
    for (const auto& [token, id] : parts_.vocab) {
      if (!ids_.emplace(token, id).second) throw Error(where_, "the token '{}' is there twice", shown(token));
      const auto bytes = from_byte_level(token);
      TokenizerTables::Token& slot = claim(token, id);
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
      if (known == ids_.end()) {
        const auto bytes = from_byte_level(a.text);
        put(claim(a.text, a.id), bytes ? *bytes : a.text);
      }
      t_->tokens[a.id].special = a.special;
      t_->added_ids.emplace(a.text, a.id);
      (a.normalized ? normalized : plain).push_back(a);
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
  std::shared_ptr<TokenizerTables> t_ = std::make_shared<TokenizerTables>();
  std::unordered_map<std::string_view, std::int32_t> ids_;
};

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

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool with_special) const {
  std::string text;
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= vocab() || !tables_->tokens[id].there)
      throw Error("tokenizer", "the id {} stands for nothing in a vocabulary of {}", id, vocab())
          .hint("were the ids made with another tokenizer?");
    if (with_special || !tables_->tokens[id].special) text += tables_->text_of(id);
  }
  return text;
}

std::optional<std::int32_t> Tokenizer::id_of(std::string_view token) const {
  if (const auto found = tables_->added_ids.find(std::string(token)); found != tables_->added_ids.end())
    return found->second;
  const auto found = tables_->words.find(token);
  return found == tables_->words.end() ? std::optional<std::int32_t>() : found->second;
}

std::optional<std::int32_t> Tokenizer::end_of_text() const {
  for (const char* name : {"<|endoftext|>", "<|end_of_text|>", "<|eot|>", "</s>", "<eos>"})
    if (const auto found = tables_->added_ids.find(name); found != tables_->added_ids.end()) return found->second;
  return std::nullopt;
}

}  // namespace stretto
