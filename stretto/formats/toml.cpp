// TOML 1.0 to a tree, by toml++. It recurses and looks through lists of its tables, so what nests absurdly or is absurdly
// long is refused before it sees the text.
#include <algorithm>

#include "stretto/formats/fields.h"
#include "stretto/formats/inner/json_events.h"
#include "stretto/formats/utf8.h"

#undef TOML_SHARED_LIB  // Debian's compiled one ends the process where an assertion of its own fails
#undef TOML_HEADER_ONLY
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ASSERT(condition) static_cast<void>(0)  // some of them fail on bad input; parsing goes on all the same
#include <toml++/toml.h>

namespace stretto {
namespace {

constexpr std::size_t most_bytes = 1 << 20;

// The first position after the string that begins at `at`, or where its line or the text ends without its quote.
std::size_t after_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string three(3, quote);
  const bool long_form = text.substr(at).starts_with(three);
  for (at += long_form ? 3 : 1; at < text.size(); ++at) {
    if (quote == '"' && text[at] == '\\') {
      ++at;
    } else if (!long_form && (text[at] == quote || text[at] == '\n')) {
      return at + (text[at] == quote);
    } else if (long_form && text.substr(at).starts_with(three)) {
      at += 3;
      for (int i = 0; i < 2 && at < text.size() && text[at] == quote; ++i) ++at;  // up to two stand before the end
      return at;
    }
  }
  return text.size();
}

// Brackets within each other and the dots of keys, outside of strings and comments. Numbers have dots too: what counts
// is at most one too many.
void check_nesting(std::string_view text, std::string_view file) {
  std::vector<int> open;  // the depth before each bracket
  int depth = 0, line = 1;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      const std::size_t end = after_string(text, i);
      line += int(std::count(text.begin() + std::ptrdiff_t(i), text.begin() + std::ptrdiff_t(end), '\n'));
      i = end - 1;
    } else if (c == '#') {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (c == '\n') {
      ++line;
      if (open.empty()) depth = 0;
    } else if (c == '[' || c == '{') {
      open.push_back(depth++);
    } else if (c == ',' && !open.empty()) {
      depth = open.back() + 1;
    } else if ((c == ']' || c == '}') && !open.empty()) {
      depth = open.back();
      open.pop_back();
    } else if (c == '.') {
      ++depth;
    }
    if (depth > most_nesting)
      throw Error(fmt::format("{}:{}", file, line), "nests deeper than {} levels", most_nesting);
  }
}

class Reader {
 public:
  explicit Reader(std::string_view file) : file_(std::make_shared<const std::string>(file)) {}

  Field field(const toml::node& node) const {
    Field made = value(node);
    made.source = {file_, int(node.source().begin.line)};
    return made;
  }

 private:
  Field value(const toml::node& node) const {
    if (const auto* table = node.as_table()) return members(*table);
    if (const auto* array = node.as_array()) {
      Field::Array items;
      for (const toml::node& item : *array) items.push_back(field(item));
      return items;
    }
    if (const auto* v = node.as_string()) return v->get();
    if (const auto* v = node.as_integer()) return i64(v->get());
    if (const auto* v = node.as_boolean()) return v->get();
    if (const auto* v = node.as_floating_point()) return v->get();
    throw Error(fmt::format("{}:{}", *file_, node.source().begin.line),
                "column {}: this is a date or a time; put it in quotes", node.source().begin.column);
  }

  // In the order of the file; toml++ sorts them by name.
  Field members(const toml::table& table) const {
    std::vector<std::pair<const toml::key*, const toml::node*>> found;
    for (const auto& [key, node] : table) found.emplace_back(&key, &node);
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
      const toml::source_position x = a.first->source().begin, y = b.first->source().begin;
      return std::pair(x.line, x.column) < std::pair(y.line, y.column);
    });
    Field::Table made;
    for (const auto& [key, node] : found) made.push_back({std::string(key->str()), field(*node)});
    return made;
  }

  std::shared_ptr<const std::string> file_;
};

std::string_view line_of(std::string_view text, std::size_t line) {
  while (--line > 0) text.remove_prefix(text.find('\n') + 1);
  text = text.substr(0, text.find('\n'));
  return text.substr(std::min(text.find_first_not_of(" \t"), text.size()));
}

}  // namespace

Field read_toml(std::string_view text, std::string_view file) {
  if (text.size() > most_bytes)
    throw Error(std::string(file), "has {} bytes, more than the {} that TOML may have here", text.size(), most_bytes);
  if (const auto bad = first_bad_utf8(text))
    throw Error(fmt::format("{}:{}", file, 1 + std::count(text.begin(), text.begin() + std::ptrdiff_t(*bad), '\n')),
                "is not UTF-8: byte {} is 0x{:02x}", *bad, unsigned(static_cast<unsigned char>(text[*bad])));
  check_nesting(text, file);
  try {
    return Reader(file).field(toml::parse(text));
  } catch (const toml::parse_error& error) {
    constexpr std::string_view lead = "Error while parsing ";
    const toml::source_position at = error.source().begin;
    std::string_view what = error.description();
    if (what.starts_with(lead)) what.remove_prefix(lead.size());
    throw Error(fmt::format("{}:{}", file, at.line), "column {}, {}; the line is '{}'", at.column, shown(what, 400),
                shown(line_of(text, at.line)));
  }
}

}  // namespace stretto
