// Text files to one token file.
//
//   Tokenized t = tokenize_files({"a.txt", "b.jsonl"}, read_tokenizer("tokenizer.json"), "train.bin", {.end = 50256});
//
// A file is one document; of a .jsonl or .jsonl.gz file every line is an object with one, under the key "text".
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stretto/formats/token_file.h"
#include "stretto/tokenize/tokenizer.h"

namespace stretto {

struct TokenizeOptions {
  TokenFormat format = TokenFormat::nanogpt;
  std::optional<std::int32_t> end = {};  // a token after every document
  std::string key = "text";              // of .jsonl files
  std::function<void(u64 done, u64 of)> progress = {};
};
struct Tokenized {
  u64 bytes = 0;  // of text: not of what it is packed in
  i64 tokens = 0, documents = 0;
};
Tokenized tokenize_files(const std::vector<std::filesystem::path>& files, const Tokenizer&,
                         const std::filesystem::path& out, const TokenizeOptions&);

}  // namespace stretto
