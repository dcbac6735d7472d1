// Is this text well-formed markup? Enough of a parser for what the pictures write.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace stretto::sample {

// "" when every tag is closed in order and quotes and entities are whole; else what is wrong.
inline std::string markup_fault(std::string_view text, bool html) {
  const std::vector<std::string_view> without_end =
      html ? std::vector<std::string_view>{"meta", "input"} : std::vector<std::string_view>{};
  std::vector<std::string> open;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '&') {
      const std::size_t end = text.find(';', i);
      if (end == text.npos || end - i > 7) return "bare & at " + std::string(text.substr(i, 20));
      i = end + 1;
      continue;
    }
    if (text[i] != '<') {
      if (static_cast<unsigned char>(text[i]) < 0x20 && text[i] != '\n') return "control character";
      ++i;
      continue;
    }
    if (text.substr(i, 2) == "<!") {
      i = text.find('>', i) + 1;
      continue;
    }
    std::size_t end = i + 1;
    char quote = 0;
    for (; end < text.size() && (quote || text[end] != '>'); ++end) {
      if (quote ? text[end] == quote : text[end] == '"') quote = quote ? 0 : text[end];
      if (text[end] == '<') return "< inside a tag at " + std::string(text.substr(i, 40));
    }
    if (end >= text.size()) return "unclosed tag";
    const std::string_view tag = text.substr(i + 1, end - i - 1);
    i = end + 1;
    const std::string_view word = tag.substr(tag[0] == '/', tag.find_first_of(" /", 1) - (tag[0] == '/'));
    if (tag[0] == '/') {
      if (open.empty() || open.back() != word) return "stray </" + std::string(word) + ">";
      open.pop_back();
    } else if (tag.back() != '/' && std::find(without_end.begin(), without_end.end(), word) == without_end.end()) {
      open.emplace_back(word);
      if (html && (word == "script" || word == "style")) {  // their contents are not markup
        i = text.find("</" + std::string(word) + ">", i);
        if (i == text.npos) return "unclosed " + std::string(word);
      }
    }
  }
  return open.empty() ? "" : "unclosed " + open.back();
}

inline int count(std::string_view text, std::string_view part) {
  int n = 0;
  for (std::size_t i = text.find(part); i != text.npos; i = text.find(part, i + part.size())) ++n;
  return n;
}

}  // namespace stretto::sample
