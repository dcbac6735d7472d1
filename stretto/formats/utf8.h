// UTF-8 as the parsers of this folder need it: `first_bad_utf8(text)`, `append_utf8(out, 0x1F600)`, `shown(text)`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stretto {

std::optional<std::size_t> first_bad_utf8(std::string_view text);  // offset of the first byte that is not UTF-8
bool append_utf8(std::string& out, std::uint32_t code_point);      // false for surrogates and beyond U+10FFFF
// For messages: control characters and bad bytes as \xNN, cut with "..." after `most` bytes.
std::string shown(std::string_view text, std::size_t most = 60);

}  // namespace stretto
