// Text to token ids and back, as Hugging Face's tokenizer.json or SentencePiece's tokenizer.model say.
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
#include "stretto/tokenize/parts.h"

namespace stretto {

struct TokenizerTables;

class Tokenizer {
 public:
  explicit Tokenizer(const TokenizerParts&, std::string_view where = "tokenizer");  // Error for what does not fit
  static Tokenizer bytes();  // a token is a byte: a vocabulary of 256

  i64 vocab() const;  // ids are below it
  std::vector<std::int32_t> encode(std::string_view text, bool with_special = false) const;
  // With byte-level tokens exactly the bytes that were encoded. An id that stands for nothing is an Error.
  // Not whole: in the middle of a text, where a blank at the beginning is one.
  std::string decode(std::span<const std::int32_t> ids, bool with_special = true, bool whole = true) const;
  // "<|endoftext|>", or " the" as its bytes; of vocabularies that are not byte-level "▁the".
  std::optional<std::int32_t> id_of(std::string_view token) const;
  std::optional<std::int32_t> end_of_text() const;  // the special token that usually ends a document
  std::vector<std::int32_t> special_ids() const;    // of all special tokens
  const TokenizerTables& tables() const { return *tables_; }

 private:
  std::shared_ptr<const TokenizerTables> tables_;
};

// tokenizer.json, tokenizer.model, or a directory with one of them; "bytes": Tokenizer::bytes().
Tokenizer read_tokenizer(const std::filesystem::path& file);
// The file that read_tokenizer() reads: of a directory tokenizer.json, else tokenizer.model.
std::filesystem::path tokenizer_file(const std::filesystem::path& file);
TokenizerParts parse_tokenizer(std::string_view content, std::string_view file);  // of either kind
std::string tokenizer_json(const TokenizerParts&);  // byte-level ones; the tokenizers library reads it

class Encoder {
 public:
  explicit Encoder(const Tokenizer&);
  ~Encoder();
  Encoder(Encoder&&) noexcept;
  void encode(std::string_view text, std::vector<std::int32_t>& to);  // appends
  // For long texts: `full` gets the ids a few ten thousand at a time, and how much of the text is done, in bytes.
  using Full = std::function<void(std::span<const std::int32_t> ids, std::size_t done)>;
  void encode(std::string_view text, const Full& full);
  // For a text that comes in parts: an id comes out when no later part can change it. `last`: the text ends with it.
  void encode_part(std::string_view part, bool last, const Full& full);
  // What `text` is cut into before merges; added tokens are not looked for.
  void each_piece(std::string_view text, const std::function<void(std::string_view)>& use);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stretto
