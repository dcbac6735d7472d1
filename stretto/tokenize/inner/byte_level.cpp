#include "stretto/tokenize/inner/byte_level.h"

#include "stretto/tokenize/inner/bytes.h"

#include <array>
#include <cstdint>
#include <optional>

#include "stretto/formats/utf8.h"

namespace stretto {
namespace {

struct Table {
  std::array<std::uint16_t, 256> character{};
  std::array<std::string, 256> text;
  std::array<std::optional<unsigned char>, 512> byte{};  // of a code point

  Table() {
    unsigned next = 256;
    for (unsigned b = 0; b < 256; ++b) {
      const bool itself = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
      character[b] = itself ? b : next++;
      byte[character[b]] = b;
      append_utf8(text[b], character[b]);
    }
  }
};

const Table& table() {
  static const Table t;
  return t;
}

}  // namespace

std::string to_byte_level(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += table().text[byte_of(c)];
  return text;
}

std::optional<std::string> from_byte_level(std::string_view text) {
  std::string bytes;
  for (std::size_t at = 0; at < text.size(); ++at) {
    unsigned point = byte_of(text[at]);
    if (point >= 0x80) {  // all of them are below U+0200 and so take one or two bytes
      if (point > 0xC7 || at + 1 == text.size()) return std::nullopt;
      point = (point & 0x1F) << 6 | (byte_of(text[++at]) & 0x3F);
    }
    const std::optional<unsigned char> byte = table().byte[point];
    if (!byte) return std::nullopt;
    bytes += *byte;
  }
  return bytes;
}

std::optional<unsigned char> byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  unsigned byte = 0;
  for (const char c : token.substr(3, 2)) {
    const std::size_t digit = std::string_view("0123456789ABCDEF").find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    byte = 16 * byte + digit;
  }
  return byte;
}

unsigned byte_level_character(unsigned char byte) { return table().character[byte]; }

}  // namespace stretto
