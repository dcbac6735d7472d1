// The frame of every page: its head, the colours of the palette as variables in light and dark, and how prose looks.
//
//   write_file(path, html_document({.title = "a report", .css = prose_style, .body = body}));
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>

namespace stretto {

struct Document {
  std::string_view title;  // plain text
  std::initializer_list<std::string_view> css = {};
  std::string_view body = {};  // HTML
  std::string_view script = {};
};
std::string html_document(const Document&);
extern const std::string_view prose_style;  // of pages to be read: headings, boxes of text, wide pictures

}  // namespace stretto
