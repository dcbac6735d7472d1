#include "stretto/view/escape.h"

#include <nlohmann/json.hpp>
#include <string_view>

namespace stretto {

std::string escape_xml(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = [&](std::size_t k) { return k < text.size() ? static_cast<unsigned char>(text[k]) : 0u; };
    const unsigned c = byte(i);
    if (c < 0x80) {
      const std::string_view special = "&<>\"'";
      constexpr std::string_view written[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
      const std::size_t k = special.find(char(c));
      if (k != special.npos)
        out += written[k];
      else
        out += c >= 0x20 && c != 0x7f ? char(c) : ' ';
      ++i;
      continue;
    }
    const int length = c >= 0xC2 && c < 0xE0 ? 2 : c >= 0xE0 && c < 0xF0 ? 3 : c >= 0xF0 && c < 0xF5 ? 4 : 0;
    bool good = length != 0;
    for (int k = 1; k < length; ++k) good = good && (byte(i + k) & 0xC0) == 0x80;
    // Over-long forms, surrogates and what lies above U+10FFFF show in the second byte.
    if (good && ((c == 0xE0 && byte(i + 1) < 0xA0) || (c == 0xED && byte(i + 1) >= 0xA0) ||
                 (c == 0xF0 && byte(i + 1) < 0x90) || (c == 0xF4 && byte(i + 1) >= 0x90)))
      good = false;
    if (good)
      out += text.substr(i, length);
    else
      out += "\xEF\xBF\xBD";
    i += good ? length : 1;
  }
  return out;
}

std::string quoted_json(std::string_view text) {
  std::string out;
  for (const char c : nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace)) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

}  // namespace stretto
