// The characters of a string as what they are in UTF-8: `text[at]` may be negative, `byte_of(text[at])` may index a
// table.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stretto {

inline unsigned char byte_of(char c) { return static_cast<unsigned char>(c); }
inline bool inside_character(char c) { return (byte_of(c) & 0xC0) == 0x80; }  // neither ASCII nor a first byte

// How long the character at `at` is; of text that is UTF-8.
inline std::size_t character_size(std::string_view text, std::size_t at) {
  const unsigned first = byte_of(text[at]);
  return first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

// The code point of one whole character.
inline std::uint32_t code_point(std::string_view character) {
  static constexpr unsigned first_byte_bits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  std::uint32_t point = byte_of(character[0]) & first_byte_bits[character.size()];
  for (const char c : character.substr(1)) point = point << 6 | (byte_of(c) & 0x3F);
  return point;
}

}  // namespace stretto
