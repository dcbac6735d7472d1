// Training data as one long row of token ids, whatever the files look like.
//
//   std::shared_ptr<const TokenSource> text = open_bytes(find_files({"tales/*.txt"}));
//   std::vector<std::int32_t> ids(256);
//   text->read(1000, ids);                       // tokens 1000 to 1255
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stretto/base/id.h"
#include "stretto/formats/token_file.h"
#include "stretto/tokenize/tokenizer.h"

namespace stretto {

class TokenSource {
 public:
  virtual ~TokenSource() = default;
  virtual i64 tokens() const = 0;
  virtual i64 vocab() const = 0;  // ids are below it
  virtual void read(i64 first, std::span<std::int32_t> to) const = 0;
  // Where documents begin after token `first` and before token `end`, in rising order.
  virtual std::vector<i64> documents(i64 first, i64 end) const = 0;
  // The same tokens where they are targets: -100 where there is no loss.
  virtual void targets(i64 first, std::span<std::int32_t> to) const { read(first, to); }
  // It is made of rows of the length that sequences have, and is cut nowhere else.
  virtual bool in_rows() const { return false; }
  virtual std::string str() const = 0;  // "tales.txt, 400184 bytes"
};

// Files, globs, or a mixture of both; what a glob finds is in the order of its names. A name that finds nothing is an
// Error.
std::vector<std::filesystem::path> find_files(const std::vector<std::string>& names,
                                              const std::filesystem::path& beside = {});  // see where_names_are()

// The bytes of the files, one file after the other: a vocabulary of 256. The files are mapped, not read.
std::shared_ptr<const TokenSource> open_bytes(const std::vector<std::filesystem::path>& files);

// Text as a tokenizer cuts it, held in memory; for more than a few hundred megabytes tokenize once and read the file.
// Every document ends with the tokenizer's end-of-text token, if it has one. `field` is the one that holds the text in
// a line of .jsonl files.
std::shared_ptr<const TokenSource> open_text(const std::vector<std::filesystem::path>& files, const Tokenizer&,
                                             const std::string& field = "text");

// Token files, mapped. `format` none: told by their look. A token that is not below `vocab` is an Error that names the
// file and the place (vocab 0: not checked); of very large files samples are looked at, the rest when it is read.
struct TokenFilesOptions {
  std::optional<TokenFormat> format = {};
  i64 vocab = 0;
  bool documents = false;                // wanted: an Error for files that cannot say where documents begin
  std::optional<std::int32_t> end = {};  // the token that ends a document; Megatron's files need none
};
std::shared_ptr<const TokenSource> open_token_files(const std::vector<std::filesystem::path>& files,
                                                    const TokenFilesOptions&);

// The largest id in token files; none: there is none, or there are too many to look at all.
std::optional<i64> largest_token(const std::vector<std::filesystem::path>& files, std::optional<TokenFormat> format);

// One source after the other.
std::shared_ptr<const TokenSource> joined(std::vector<std::shared_ptr<const TokenSource>> sources);

// Part of a source, e.g. what is held out for validation.
std::shared_ptr<const TokenSource> part_of(std::shared_ptr<const TokenSource> whole, i64 first, i64 tokens);

}  // namespace stretto
