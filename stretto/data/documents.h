// The documents of text files, compressed or not.
//
//   each_document("a.jsonl.gz", "text", [](const DocumentPart& part) { ... });
//
// A file is one document; of a .jsonl or .jsonl.gz file every line is an object that has one.
#pragma once
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "stretto/formats/fields.h"

namespace stretto {

bool has_lines(const std::filesystem::path& file);      // .jsonl, .jsonl.gz
bool is_compressed(const std::filesystem::path& file);  // .gz

// The key that holds the text in a line of .jsonl files, unless another is named. An Error when another is named and
// none of the files has lines: it would be ignored.
inline constexpr std::string_view usual_field = "text";
void need_lines_for(const std::string& field, std::span<const std::filesystem::path> files);

// An Error with what to do when the file's beginning is not text: compressed or columnar formats, NUL bytes, much that
// is not UTF-8. Files that are named .gz are looked into.
void need_text(const std::filesystem::path& file);

// A whole document, but for a compressed text: it comes in parts while it is unpacked, cut anywhere, the last one is
// empty.
struct DocumentPart {
  std::string_view text;
  bool last = true;      // the document ends with it
  std::size_t done = 0;  // bytes of the file that have been read by then
};
// A line without `field`, or that is no object, is an Error with its number.
void each_document(const std::filesystem::path& file, const std::string& field,
                   const std::function<void(const DocumentPart&)>& use);

// Calls use(object, line, where) for every line of a .jsonl or .jsonl.gz file; `where` is "file:12".
void each_line(
    const std::filesystem::path& file,
    const std::function<void(const Field& object, std::string_view line, const std::string& where)>& use);

}  // namespace stretto
