// Text to token ids and back, as Hugging Face's tokenizer.json of the byte-level BPE kind says (GPT-2, Llama 3).
//
//   Tokenizer tokenizer = read_tokenizer("tokenizer.json");
//   std::vector<std::int32_t> ids = tokenizer.encode("Hello, world!");
//   std::string text = tokenizer.decode(ids);
//
// A Tokenizer never changes and is cheap to copy. An Encoder remembers the words it has seen: one per thread.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stretto/base/id.h"
#include "stretto/tokenize/added_tokens.h"

namespace stretto {

// What a tokenizer is made of, as plain data. Tokens are in byte-level characters ("Ġthe").
struct TokenizerParts {
  struct Step {
    std::string pattern;        // pieces are its matches ...
    bool keep_rest = true;      // ... and what lies between them
    bool prefix_space = false;  // instead of a pattern: a blank before a piece that has none
    bool operator==(const Step&) const = default;
  };
  std::vector<std::pair<std::string, std::int32_t>> vocab;
  std::vector<std::pair<std::string, std::string>> merges;  // by rank
  std::vector<AddedToken> added;
  std::vector<Step> steps;
  bool ignore_merges = false;               // a piece that is in the vocabulary is one token, whatever the merges say
  std::vector<std::int32_t> before, after;  // what encode() puts around a text when asked
  bool operator==(const TokenizerParts&) const = default;
};

struct TokenizerTables;

class Tokenizer {
 public:
  explicit Tokenizer(const TokenizerParts&, std::string_view where = "tokenizer");  // Error for what does not fit
  static Tokenizer bytes();  // a token is a byte: a vocabulary of 256

  i64 vocab() const;  // ids are below it
  std::vector<std::int32_t> encode(std::string_view text, bool with_special = false) const;
  // Exactly the bytes that were encoded. An id that stands for nothing is an Error.
  std::string decode(std::span<const std::int32_t> ids, bool with_special = true) const;
  std::optional<std::int32_t> id_of(std::string_view token) const;  // "<|endoftext|>", or " the" as its bytes
  std::optional<std::int32_t> end_of_text() const;                  // the special token that usually ends a document
  const TokenizerTables& tables() const { return *tables_; }

 private:
  std::shared_ptr<const TokenizerTables> tables_;
};

Tokenizer read_tokenizer(const std::filesystem::path& file);  // "bytes": Tokenizer::bytes()
TokenizerParts parse_tokenizer(std::string_view json, std::string_view file);
std::string tokenizer_json(const TokenizerParts&);  // which the tokenizers library reads

class Encoder {
 public:
  explicit Encoder(const Tokenizer&);
  ~Encoder();
  Encoder(Encoder&&) noexcept;
  void encode(std::string_view text, std::vector<std::int32_t>& to);  // appends
  // For long texts: `full` gets the ids a few ten thousand at a time, and how much of the text is done, in bytes.
  using Full = std::function<void(std::span<const std::int32_t> ids, std::size_t done)>;
  void encode(std::string_view text, const Full& full);
  // What `text` is cut into before merges; added tokens are not looked for.
  void each_piece(std::string_view text, const std::function<void(std::string_view)>& use);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stretto
