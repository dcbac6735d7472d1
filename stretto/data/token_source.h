// Training data as one long row of token ids, whatever the files look like. One format is one file of this folder.
//
//   std::shared_ptr<const TokenSource> text = open_bytes(find_files({"tales/*.txt"}));
//   std::vector<std::int32_t> ids(256);
//   text->read(1000, ids);                       // tokens 1000 to 1255
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "stretto/base/id.h"

namespace stretto {

class TokenSource {
 public:
  virtual ~TokenSource() = default;
  virtual i64 tokens() const = 0;
  virtual i64 vocab() const = 0;  // ids are below it
  virtual void read(i64 first, std::span<std::int32_t> to) const = 0;
  virtual std::string str() const = 0;  // "tales.txt, 400184 bytes"
};

// Files, globs, or a mixture of both; what a glob finds is in the order of its names. A name that finds nothing is an
// Error.
std::vector<std::filesystem::path> find_files(const std::vector<std::string>& names);

// The bytes of the files, one file after the other: a vocabulary of 256. The files are mapped, not read.
std::shared_ptr<const TokenSource> open_bytes(const std::vector<std::filesystem::path>& files);

// Part of a source, e.g. what is held out for validation.
std::shared_ptr<const TokenSource> part_of(std::shared_ptr<const TokenSource> whole, i64 first, i64 tokens);

}  // namespace stretto
