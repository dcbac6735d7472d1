#include "stretto/formats/token_file.h"

#include "stretto/base/error.h"
#include "stretto/base/files.h"

namespace stretto {

namespace fs = std::filesystem;

namespace {

MegatronTokens open_megatron(const fs::path& path) {
  MegatronTokens file(path);
  if (!file.contiguous())
    throw Error(path.string(), "has sequences that do not follow one another")
        .hint("build the data set again without gaps");
  return file;
}

}  // namespace

TokenFile::Any TokenFile::open(const fs::path& path, TokenFormat format) {
  switch (format) {
    case TokenFormat::nanogpt:
      return NanogptTokens(path);
    case TokenFormat::llmc:
      return LlmcTokens(path);
    case TokenFormat::megatron:
      break;
  }
  return open_megatron(path);
}

TokenFile::Any TokenFile::open(const fs::path& path) {
  fs::path idx = path, bare_idx = path;
  idx.replace_extension(".idx");
  bare_idx += ".idx";
  if ((path.extension() == ".bin" && is_there(idx)) || path.extension() == ".idx" || is_there(bare_idx))
    return open_megatron(path);
  const MappedFile file(path);  // names a file that is not there
  if (LlmcTokens::recognises(file.bytes())) return LlmcTokens(path);
  if (path.extension() != ".bin")
    throw Error(path.string(), "is no token file")
        .hint("token files are .bin, or .bin with .idx; other files are text");
  return NanogptTokens(path);
}

bool looks_like_tokens(const fs::path& path) {
  return path.extension() == ".bin" || path.extension() == ".idx" || LlmcTokens::recognises(MappedFile(path).bytes());
}

// Of what the formats say without one.
constexpr std::string_view on_damage = "the file is damaged or of another format: make it again, or name its format";
TokenFile::TokenFile(const fs::path& path) : path_(path), file_(with_hint(on_damage, [&] { return open(path); })) {}
TokenFile::TokenFile(const fs::path& path, TokenFormat format)
    : path_(path), file_(with_hint(on_damage, [&] { return open(path, format); })) {}

TokenSpan TokenFile::tokens() const {
  return std::visit([](const auto& file) { return file.tokens(); }, file_);
}

std::string_view TokenFile::format() const {
  constexpr std::string_view names[] = {"nanoGPT", "llm.c", "Megatron"};
  return names[file_.index()];
}

TokenFileWriter::TokenFileWriter(const fs::path& path, TokenFormat format, i64 vocab) {
  const bool narrow = vocab <= 65536;
  switch (format) {
    case TokenFormat::nanogpt:
      if (!narrow)
        throw Error(path.string(), "nanoGPT's files have 16 bits per token, and the vocabulary is {}", vocab)
            .hint("use the format llmc or megatron");
      file_ = std::make_unique<NanogptWriter>(path);
      return;
    case TokenFormat::llmc:
      file_ = std::make_unique<LlmcWriter>(path, narrow ? LlmcKind::narrow : LlmcKind::wide);
      return;
    case TokenFormat::megatron:
      file_ = std::make_unique<MegatronWriter>(path, narrow ? FileType::U16 : FileType::I32);
      return;
  }
}

void TokenFileWriter::write(std::span<const std::int32_t> tokens) {
  std::visit([&](auto& file) { file->write(tokens); }, file_);
  tokens_ += i64(tokens.size());
}

void TokenFileWriter::end_document() {
  if (auto* megatron = std::get_if<std::unique_ptr<MegatronWriter>>(&file_)) (*megatron)->end_document();
  ++documents_;
}

void TokenFileWriter::commit() {
  std::visit([](auto& file) { file->commit(); }, file_);
}

}  // namespace stretto
