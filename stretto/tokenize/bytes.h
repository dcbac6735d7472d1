// The characters of a string as what they are in UTF-8: `text[at]` may be negative, `byte_of(text[at])` may index a table.
#pragma once

namespace stretto {

inline unsigned char byte_of(char c) { return static_cast<unsigned char>(c); }
inline bool inside_character(char c) { return (byte_of(c) & 0xC0) == 0x80; }  // neither ASCII nor a first byte

}  // namespace stretto
