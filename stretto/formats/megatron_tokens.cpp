#include "stretto/formats/megatron_tokens.h"

#include <cstring>
#include <limits>
#include <string_view>

#include "stretto/base/error.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view index_magic{"MMIDIDX\0\0", 9};
constexpr std::size_t index_header = 9 + 8 + 1 + 8 + 8;

template <class T>
T load(std::span<const std::byte> bytes, std::size_t at) {  // the arrays lie at odd addresses
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

fs::path beside(const fs::path& given, const char* extension) {
  fs::path path = given;
  if (path.extension() == ".idx" || path.extension() == ".bin") path.replace_extension();
  return path += extension;
}

FileType token_type(int code, const std::string& file) {
  switch (code) {
    case 1:
      return FileType::U8;
    case 2:
      return FileType::I8;
    case 3:
      return FileType::I16;
    case 4:
      return FileType::I32;
    case 5:
      return FileType::I64;
    case 6:
    case 7:
      throw Error(file, "holds {} and not tokens", code == 6 ? "f64" : "f32");
    case 8:
      return FileType::U16;
    default:
      throw Error(file, "has the element type {}, which does not exist", code);
  }
}

}  // namespace

MegatronTokens::MegatronTokens(const fs::path& prefix) : idx_(beside(prefix, ".idx")), bin_(beside(prefix, ".bin")) {
  const std::string file = idx_.path().string();
  const auto idx = idx_.bytes();
  if (idx_.text().substr(0, index_magic.size()) != index_magic)
    throw Error(file, "does not begin with MMIDIDX and so is no Megatron index");
  if (idx.size() < index_header)
    throw Error(file, "is {} bytes long; the header alone takes {}", idx.size(), index_header);
  if (const auto version = load<u64>(idx, 9); version != 1)
    throw Error(file, "has version {}; only version 1 is known", version);
  type_ = token_type(load<std::uint8_t>(idx, 17), file);
  const auto sequences = load<u64>(idx, 18), boundaries = load<u64>(idx, 26);
  const u64 room = idx.size() - index_header;
  // Divisions first: absurd counts must not overflow the products.
  if (sequences > room / 12 || boundaries > room / 8 || sequences * 12 + boundaries * 8 > room)
    throw Error(file, "says it holds {} sequences and {} document boundaries, which {} bytes cannot", sequences,
                boundaries, idx.size())
        .hint("is the file cut off?");
  if (boundaries == 0) throw Error(file, "has no document boundaries, not even the first");
  const u64 rest = room - sequences * 12 - boundaries * 8;
  if (rest != 0 && rest != sequences)
    throw Error(file, "has {} bytes after its arrays", rest).hint("is something appended to the file?");
  sequences_ = i64(sequences);
  boundaries_ = i64(boundaries);
  lengths_ = index_header;
  offsets_ = lengths_ + 4 * sequences;
  documents_ = offsets_ + 8 * sequences;
  modes_ = rest ? documents_ + 8 * boundaries : 0;

  const i64 item = i64(size_of(type_)), available = i64(bin_.bytes().size());
  i64 expected = 0;
  for (i64 s = 0; s < sequences_; ++s) {
    const i64 count = length(s), begin = byte_offset(s);
    if (count < 0) throw Error(file, "sequence {} has the length {}", s, count);
    if (begin < 0 || begin % item || begin > available || count > (available - begin) / item)
      throw Error(file, "sequence {} is said to be {} tokens at byte {}, but {} is {} bytes long", s, count, begin,
                  bin_.path().string(), available)
          .hint("do the two files belong together?");
    contiguous_ = contiguous_ && begin == expected;
    expected = begin + count * item;
  }
  contiguous_ = contiguous_ && expected == available;
  i64 before = 0;
  for (i64 d = 0; d < boundaries_; ++d) {
    const i64 at = document_begin(d);
    if (at < before || at > sequences_ || (d == 0 && at != 0) || (d + 1 == boundaries_ && at != sequences_))
      throw Error(file, "document boundary {} is at sequence {} of {}, after one at {}", d, at, sequences_, before)
          .hint("boundaries must rise from 0 to the number of sequences");
    before = at;
  }
  if (available == 0) throw Error(bin_.path().string(), "is empty");
}

i64 MegatronTokens::length(i64 s) const { return load<std::int32_t>(idx_.bytes(), lengths_ + 4 * std::size_t(s)); }
i64 MegatronTokens::byte_offset(i64 s) const { return load<i64>(idx_.bytes(), offsets_ + 8 * std::size_t(s)); }
i64 MegatronTokens::document_begin(i64 d) const { return load<i64>(idx_.bytes(), documents_ + 8 * std::size_t(d)); }

std::optional<int> MegatronTokens::mode(i64 s) const {
  if (!modes_) return std::nullopt;
  return load<std::int8_t>(idx_.bytes(), modes_ + std::size_t(s));
}

TokenSpan MegatronTokens::sequence(i64 s) const {
  if (s < 0 || s >= sequences_)
    throw Error(idx_.path().string(), "sequence {} is wanted, but there are {}", s, sequences_);
  return tokens().part(byte_offset(s) / i64(size_of(type_)), length(s));
}

MegatronWriter::MegatronWriter(const fs::path& prefix, FileType type)
    : bin_(beside(prefix, ".bin")), idx_(beside(prefix, ".idx")), type_(type) {
  STRETTO_ASSERT(type == FileType::U16 || type == FileType::I32, "a type of Megatron's");
}

void MegatronWriter::write(std::span<const std::int32_t> tokens) {
  bin_.write(bytes_of<std::int32_t>(tokens, type_, "tokens"));
  current_ += i64(tokens.size());
  if (current_ > std::numeric_limits<std::int32_t>::max())
    throw Error("Megatron writer", "a document of more than {} tokens does not fit the format",
                std::numeric_limits<std::int32_t>::max());
}

void MegatronWriter::end_document() {
  if (current_ > 0) lengths_.push_back(std::int32_t(current_));
  current_ = 0;
}

void MegatronWriter::commit() {
  end_document();
  const auto put = [&]<class T>(T value) { idx_.write(std::as_bytes(std::span(&value, 1))); };
  idx_.write(index_magic);
  put(u64(1));
  put(std::uint8_t(type_ == FileType::U16 ? 8 : 4));
  put(u64(lengths_.size()));
  put(u64(lengths_.size() + 1));
  idx_.write(std::as_bytes(std::span(lengths_)));
  i64 offset = 0;
  for (const std::int32_t length : lengths_) {
    put(offset);
    offset += i64(length) * i64(size_of(type_));
  }
  for (i64 d = 0; d <= i64(lengths_.size()); ++d) put(d);
  bin_.commit();
  idx_.commit();
}

}  // namespace stretto
