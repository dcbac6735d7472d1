#include "stretto/formats/llmc_tokens.h"

#include <array>
#include <cstring>
#include <limits>

#include "stretto/base/error.h"

namespace stretto {
namespace {

constexpr std::size_t llmc_header = 1024;

struct Kind {
  std::int32_t magic, version;
  FileType type;
};
constexpr std::array<Kind, 2> llmc_kinds{{{20240520, 1, FileType::U16}, {20240801, 7, FileType::U32}}};  // by LlmcKind

std::int32_t word(std::span<const std::byte> bytes, std::size_t index) {
  std::int32_t value;
  std::memcpy(&value, bytes.data() + 4 * index, 4);
  return value;
}

}  // namespace

bool LlmcTokens::recognises(std::span<const std::byte> bytes) {
  return bytes.size() >= 4 && (word(bytes, 0) == llmc_kinds[0].magic || word(bytes, 0) == llmc_kinds[1].magic);
}

LlmcTokens::LlmcTokens(const std::filesystem::path& path) : file_(path) {
  const auto bytes = file_.bytes();
  if (bytes.size() < llmc_header)
    throw Error(path.string(), "is {} bytes long; the header alone takes {}", bytes.size(), llmc_header);
  if (!recognises(bytes))
    throw Error(path.string(), "begins with {}; a token file of llm.c begins with {} or {}", word(bytes, 0),
                llmc_kinds[0].magic, llmc_kinds[1].magic);
  kind_ = word(bytes, 0) == llmc_kinds[0].magic ? LlmcKind::narrow : LlmcKind::wide;
  const Kind& kind = llmc_kinds[std::size_t(kind_)];
  if (word(bytes, 1) != kind.version)
    throw Error(path.string(), "has version {} where {} is expected", word(bytes, 1), kind.version);
  const i64 count = word(bytes, 2);
  if (count <= 0) throw Error(path.string(), "says it holds {} tokens", count);
  const u64 expected = llmc_header + u64(count) * size_of(kind.type);
  if (bytes.size() != expected)
    throw Error(path.string(), "says it holds {} tokens and so should be {} bytes long, but is {}", count, expected,
                bytes.size())
        .hint("{}", bytes.size() < expected ? "is the file cut off?" : "is something appended to the file?");
}

TokenSpan LlmcTokens::tokens() const {
  return {llmc_kinds[std::size_t(kind_)].type, file_.bytes().subspan(llmc_header)};
}

LlmcWriter::LlmcWriter(const std::filesystem::path& path, LlmcKind kind) : file_(path), kind_(kind) {
  const std::array<std::int32_t, llmc_header / 4> header{llmc_kinds[std::size_t(kind)].magic,
                                                         llmc_kinds[std::size_t(kind)].version};
  file_.write(std::as_bytes(std::span(header)));
}

void LlmcWriter::write(std::span<const std::int32_t> tokens) {
  file_.write(bytes_of<std::int32_t>(tokens, llmc_kinds[std::size_t(kind_)].type, "tokens"));
  count_ += i64(tokens.size());
}

void LlmcWriter::commit() {
  if (count_ > std::numeric_limits<std::int32_t>::max())
    throw Error("llm.c writer", "{} tokens do not fit one file", count_)
        .hint("write several of at most 2147483647 tokens");
  const auto count = std::int32_t(count_);
  file_.write_at(8, std::as_bytes(std::span(&count, 1)));
  file_.commit();
}

}  // namespace stretto
