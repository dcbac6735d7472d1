// nanoGPT's token files: nothing but uint16 tokens.
//
//   NanogptTokens file("train.bin");
//   file.tokens().size();
//   NanogptWriter out("val.bin");
//   out.write(ids);
//   out.commit();
#pragma once
#include <filesystem>
#include <span>

#include "stretto/formats/atomic_file.h"
#include "stretto/formats/mapped_file.h"
#include "stretto/formats/token_span.h"

namespace stretto {

class NanogptTokens {
 public:
  explicit NanogptTokens(const std::filesystem::path& path);  // Error when empty or of odd length
  TokenSpan tokens() const { return {FileType::U16, file_.bytes()}; }

 private:
  MappedFile file_;
};

class NanogptWriter {
 public:
  explicit NanogptWriter(const std::filesystem::path& path) : file_(path) {}
  void write(std::span<const std::int32_t> tokens);  // Error when one does not fit 16 bits
  void commit() { file_.commit(); }

 private:
  AtomicFile file_;
};

}  // namespace stretto
