// The characters that byte-level vocabularies write bytes with: printable Latin-1 stands for itself, the other bytes
// for U+0100 and up, so that no token has a blank or a control character in it.
//
//   to_byte_level(" the");         // "Ġthe"
//   from_byte_level("Ġthe");       // " the"
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace stretto {

std::string to_byte_level(std::string_view bytes);
std::optional<std::string> from_byte_level(std::string_view text);   // none: a character that stands for no byte
unsigned byte_level_character(unsigned char byte);                   // its code point
std::optional<unsigned char> byte_of_token(std::string_view token);  // "<0x0A>": how other vocabularies write bytes

}  // namespace stretto
