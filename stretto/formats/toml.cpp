// TOML 1.0 to a tree, and `--section.key=value`. Written here because bad input must never exhaust the stack: a key of
// ten thousand dots makes a tree that deep, which the usual parsers build and destroy recursively.
#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "stretto/formats/fields.h"
#include "stretto/formats/json_events.h"
#include "stretto/formats/utf8.h"

namespace stretto {
namespace {

// A field while the document is being read; TOML's rules about reopening tables need to know how each came to be.
struct Node {
  enum class Kind {
    value,     // closed: a scalar, an array, an inline table
    implied,   // a table named on the way to another: [a] of [a.b]
    header,    // a table with a header of its own
    dotted,    // a table made by a dotted key
    elements,  // an array of tables, [[a]]
  };
  Kind kind = Kind::value;
  Field field;  // kind value; otherwise only its source
  std::vector<std::pair<std::string, std::unique_ptr<Node>>> members;
  std::unordered_map<std::string, Node*> index;
  std::vector<std::unique_ptr<Node>> elements;

  Node* find(const std::string& key) const {
    const auto found = index.find(key);
    return found == index.end() ? nullptr : found->second;
  }
};

Field finished(Node& node) {
  Field field = std::move(node.field);
  if (node.kind == Node::Kind::value) return field;
  if (node.kind == Node::Kind::elements) {
    Field::Array array;
    for (auto& element : node.elements) array.push_back(finished(*element));
    field.value = std::move(array);
  } else {
    Field::Table table;
    for (auto& [key, member] : node.members) table.push_back({key, finished(*member)});
    field.value = std::move(table);
  }
  return field;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_bare(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-'; }

class Parser {
 public:
  Parser(std::string_view text, std::string_view file, int first_line = 1)
      : text_(text), file_(std::make_shared<const std::string>(file)), line_(first_line) {
    if (const auto bad = first_bad_utf8(text)) {
      line_ += int(std::count(text.begin(), text.begin() + std::ptrdiff_t(*bad), '\n'));
      fail_here("is not UTF-8: byte {} is 0x{:02x}", *bad, unsigned(static_cast<unsigned char>(text[*bad])));
    }
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
  }

  Field document() {
    Node root;
    root.kind = Node::Kind::header;
    root.field.source = source();
    Node* current = &root;
    int depth = 0;
    for (;;) {
      blank_lines();
      if (end()) return finished(root);
      if (peek() == '[') {
        current = header(root, depth);
      } else {
        key_value(*current, depth);
      }
      rest_of_line();
    }
  }

  // The whole text as one value; nothing when it is none.
  Field only_value() {
    spaces();
    Field field = value(0);
    spaces();
    if (!end()) fail("{} follows the value", next_shown());
    return field;
  }
  std::vector<std::string> only_key() {
    auto parts = key();
    spaces();
    if (!end()) fail("{} is not allowed in a key", next_shown());
    return parts;
  }

 private:
  // ── characters ──
  bool end() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool starts(std::string_view s) const { return text_.substr(at_).starts_with(s); }
  bool take(std::string_view s) {
    const bool there = starts(s);
    if (there) at_ += s.size();
    return there;
  }
  void spaces() {
    while (peek() == ' ' || peek() == '\t') ++at_;
  }
  bool newline() {
    const bool there = take("\n") || take("\r\n");
    if (there) ++line_, line_start_ = at_;
    return there;
  }
  void comment() {
    if (peek() != '#') return;
    while (!end() && peek() != '\n' && !starts("\r\n")) {
      if (is_control(peek())) fail("{} is not allowed in a comment", next_shown());
      ++at_;
    }
  }
  void blank_lines() {
    do {
      spaces();
      comment();
    } while (newline());
  }
  void rest_of_line() {
    spaces();
    comment();
    if (!end() && !newline()) fail("{} follows on the same line", next_shown());
  }
  // Everything but tab; a newline counts where the caller has not taken it.
  static bool is_control(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F; }
  std::string next_shown() const {
    if (end()) return "the end";
    if (peek() == '\n' || starts("\r\n")) return "the end of the line";
    std::size_t n = 1;
    while (at_ + n < text_.size() && (static_cast<unsigned char>(text_[at_ + n]) & 0xC0) == 0x80) ++n;
    return fmt::format("'{}'", shown(text_.substr(at_, n)));
  }

  // ── errors ──
  Source source() const { return {file_, line_}; }
  template <class... A>
  [[noreturn]] void fail_here(fmt::format_string<A...> what, A&&... a) const {
    throw Error(source().str(), what, std::forward<A>(a)...);
  }
  template <class... A>
  [[noreturn]] void fail(fmt::format_string<A...> what, A&&... a) const {
    fail_here("column {}: {}", at_ - line_start_ + 1, fmt::format(what, std::forward<A>(a)...));
  }
  void check_depth(int depth) const {
    if (depth > kMostNesting) fail("nests deeper than {} levels", kMostNesting);
  }

  // ── keys and tables ──
  std::string simple_key() {
    if (peek() == '"') return ++at_, basic_string();
    if (peek() == '\'') return ++at_, literal_string();
    const std::size_t begin = at_;
    while (is_bare(peek())) ++at_;
    if (at_ == begin) fail("a key is expected, not {}", next_shown());
    return std::string(text_.substr(begin, at_ - begin));
  }
  std::vector<std::string> key() {
    std::vector<std::string> parts;
    do {
      spaces();
      parts.push_back(simple_key());
      check_depth(int(parts.size()));
      spaces();
    } while (take("."));
    return parts;
  }
  static std::string dotted(std::span<const std::string> parts) {
    std::string s;
    for (const auto& p : parts) s.append(s.empty() ? "" : ".").append(shown(p));
    return s;
  }
  Node& add(Node& table, std::string key, Node::Kind kind) {
    auto node = std::make_unique<Node>();
    node->kind = kind;
    node->field.source = source();
    Node* added = node.get();
    table.index.emplace(key, added);
    table.members.emplace_back(std::move(key), std::move(node));
    return *added;
  }
  [[noreturn]] void twice(std::span<const std::string> parts, const Node& first) const {
    fail_here("key '{}' stands twice; it was first given in line {}", dotted(parts), first.field.source.line);
  }

  Node* header(Node& root, int& depth) {
    const bool element = take("[[");
    if (!element) ++at_;
    const std::vector<std::string> parts = key();
    if (!take(element ? "]]" : "]")) fail("'{}' is expected, not {}", element ? "]]" : "]", next_shown());
    Node* table = &root;
    depth = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      Node* next = table->find(parts[i]);
      if (!next) next = &add(*table, parts[i], Node::Kind::implied);
      if (next->kind == Node::Kind::value)
        fail_here("'{}' is {} since line {} and cannot be opened as a table", dotted(std::span(parts).first(i + 1)),
                  next->field.kind(), next->field.source.line);
      if (next->kind == Node::Kind::elements) next = next->elements.back().get(), ++depth;
      table = next;
      ++depth;
    }
    ++depth;
    Node* last = table->find(parts.back());
    if (element) {
      if (last && last->kind != Node::Kind::elements) twice(parts, *last);
      if (!last) last = &add(*table, parts.back(), Node::Kind::elements);
      last->elements.push_back(std::make_unique<Node>());
      last = last->elements.back().get();
      last->field.source = source();
      ++depth;
    } else {
      if (last && last->kind != Node::Kind::implied) twice(parts, *last);
      if (!last) last = &add(*table, parts.back(), Node::Kind::header);
      last->field.source = source();
    }
    last->kind = Node::Kind::header;
    check_depth(depth);
    return last;
  }

  void key_value(Node& table, int depth) {
    const std::vector<std::string> parts = key();
    const std::span<const std::string> all(parts);
    if (!take("=")) fail("'=' is expected after '{}', not {}", dotted(all), next_shown());
    depth += int(parts.size());
    check_depth(depth);
    Node* at = &table;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      Node* next = at->find(parts[i]);
      if (!next) next = &add(*at, parts[i], Node::Kind::dotted);
      if (next->kind != Node::Kind::dotted) twice(all.first(i + 1), *next);
      at = next;
    }
    if (const Node* before = at->find(parts.back())) twice(all, *before);
    Node& node = add(*at, parts.back(), Node::Kind::value);
    spaces();
    node.field = value(depth);
  }

  // ── values ──
  Field value(int depth) {
    check_depth(depth);
    Field field;
    const Source here = source();
    if (take("\"\"\""))
      field = Field(multi_line('"'));
    else if (take("'''"))
      field = Field(multi_line('\''));
    else if (take("\""))
      field = Field(basic_string());
    else if (take("'"))
      field = Field(literal_string());
    else if (take("["))
      field = Field(array(depth));
    else if (take("{"))
      field = inline_table(depth);
    else
      field = plain();
    field.source = here;
    return field;
  }

  Field::Array array(int depth) {
    Field::Array items;
    for (;;) {
      blank_lines();
      if (take("]")) return items;
      items.push_back(value(depth + 1));
      blank_lines();
      if (take("]")) return items;
      if (!take(",")) fail("',' or ']' is expected, not {}", next_shown());
    }
  }

  Field inline_table(int depth) {
    Node table;
    table.kind = Node::Kind::header;
    spaces();
    if (take("}")) return finished(table);
    for (;;) {
      key_value(table, depth);
      spaces();
      if (take("}")) return finished(table);
      if (!take(",")) fail("',' or '}}' is expected, not {}", next_shown());
    }
  }

  void escape(std::string& out) {  // after the backslash
    const char c = peek();
    const std::size_t digits = c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits) {
      const std::string_view hex = text_.substr(std::min(at_ + 1, text_.size()), digits);
      std::uint32_t code = 0;
      const auto [stop, status] = std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
      if (hex.size() != digits || stop != hex.data() + digits || status != std::errc() || !append_utf8(out, code))
        fail("'\\{}{}' is no character", c, shown(hex));
      at_ += 1 + digits;
      return;
    }
    constexpr std::string_view names = "btnfr\"\\", values = "\b\t\n\f\r\"\\";
    const auto found = names.find(c);
    if (end() || found == std::string_view::npos) fail("'\\' before {} means nothing", next_shown());
    out += values[found];
    ++at_;
  }

  std::string basic_string() {  // after the opening quote
    std::string out;
    for (;;) {
      if (end() || is_control(peek())) fail("a string has no end: {} where '\"' is expected", next_shown());
      const char c = text_[at_++];
      if (c == '"') return out;
      if (c == '\\')
        escape(out);
      else
        out += c;
    }
  }
  std::string literal_string() {
    const std::size_t begin = at_;
    while (!end() && peek() != '\'' && !is_control(peek())) ++at_;
    if (peek() != '\'') fail("a string has no end: {} where \"'\" is expected", next_shown());
    return std::string(text_.substr(begin, at_++ - begin));
  }
  std::string multi_line(char quote) {
    const std::string three(3, quote);
    const int opened = line_;
    std::string out;
    newline();
    for (;;) {
      if (end()) fail_here("the string that begins in line {} has no end", opened);
      if (take(three)) {
        for (int i = 0; i < 2 && peek() == quote; ++i)
          out += quote, ++at_;  // up to two quotes may stand before the end
        return out;
      }
      if (newline()) {
        out += '\n';
      } else if (is_control(peek())) {
        fail("{} is not allowed in a string", next_shown());
      } else if (quote == '"' && take("\\")) {
        const std::size_t back = at_;
        spaces();
        if (newline()) {  // a backslash at the end of a line joins it to the next text
          do spaces();
          while (newline());
        } else {
          at_ = back;
          escape(out);
        }
      } else {
        out += text_[at_++];
      }
    }
  }

  Field plain() {
    const std::size_t begin = at_;
    while (is_bare(peek()) || peek() == '+' || peek() == '.' || peek() == ':') ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    const std::size_t stop = at_;
    at_ = begin;
    if (word.empty()) fail("a value is expected, not {}", next_shown());
    const Field field = classify(word);
    at_ = stop;
    return field;
  }

  Field classify(std::string_view word) {
    if (word == "true") return Field(true);
    if (word == "false") return Field(false);
    const bool sign = word[0] == '+' || word[0] == '-';
    const std::string_view bare = word.substr(sign);
    const double minus = word[0] == '-' ? -1 : 1;
    if (bare == "inf") return Field(minus * std::numeric_limits<double>::infinity());
    if (bare == "nan") return Field(minus * std::numeric_limits<double>::quiet_NaN());
    if (bare.empty() || !is_digit(bare[0])) fail("'{}' is no value", shown(word));
    const bool date = bare.size() > 4 && bare[4] == '-' && std::all_of(bare.begin(), bare.begin() + 4, is_digit);
    if (date || bare.find(':') != std::string_view::npos)
      fail("'{}' is a date or a time; put it in quotes", shown(word));
    for (const auto& [prefix, base] : {std::pair{"0x", 16}, {"0o", 8}, {"0b", 2}})
      if (!sign && bare.starts_with(prefix)) return integer(word, bare.substr(2), base, false);
    if (bare.find_first_of(".eE") == std::string_view::npos) {
      if (bare.size() > 1 && bare[0] == '0') fail("'{}' begins with a zero", shown(word));
      return integer(word, bare, 10, word[0] == '-');
    }
    return real(word, bare, minus);
  }

  // Without the underscores, which may only stand between digits.
  std::string digits(std::string_view word, std::string_view text, bool hex) const {
    const auto digit = [&](std::size_t i) {
      return i < text.size() && (hex ? std::isxdigit(static_cast<unsigned char>(text[i])) != 0 : is_digit(text[i]));
    };
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '_')
        out += text[i];
      else if (i == 0 || !digit(i - 1) || !digit(i + 1))
        fail("'{}' has an underscore that does not stand between digits", shown(word));
    }
    return out;
  }
  Field integer(std::string_view word, std::string_view text, int base, bool negative) const {
    const std::string clean = fmt::format("{}{}", negative ? "-" : "", digits(word, text, base == 16));
    i64 value = 0;
    const auto [stop, status] = std::from_chars(clean.data(), clean.data() + clean.size(), value, base);
    const bool at_end = stop == clean.data() + clean.size();
    if (status == std::errc::result_out_of_range && at_end) fail("'{}' does not fit 64 bits", shown(word));
    if (status != std::errc() || !at_end || (base != 10 && clean[0] == '-')) fail("'{}' is no number", shown(word));
    return Field(value);
  }
  Field real(std::string_view word, std::string_view text, double sign) const {
    const std::string clean = digits(word, text, false);
    // [digits][.digits][e[+-]digits], no leading zero, digits on both sides of the dot
    std::size_t i = 0;
    const auto run = [&] {
      const std::size_t begin = i;
      while (i < clean.size() && is_digit(clean[i])) ++i;
      return i > begin;
    };
    bool right = run() && (clean[0] != '0' || i == 1);
    if (right && i < clean.size() && clean[i] == '.') ++i, right = run();
    if (right && i < clean.size() && (clean[i] == 'e' || clean[i] == 'E')) {
      if (++i < clean.size() && (clean[i] == '+' || clean[i] == '-')) ++i;
      right = run();
    }
    if (!right || i != clean.size()) fail("'{}' is no number", shown(word));
    double value = 0;
    const auto status = std::from_chars(clean.data(), clean.data() + clean.size(), value).ec;
    if (status != std::errc()) fail("'{}' does not fit a double", shown(word));
    return Field(sign * value);
  }

  std::string_view text_;
  std::shared_ptr<const std::string> file_;
  std::size_t at_ = 0, line_start_ = 0;
  int line_;
};

}  // namespace

Field read_toml(std::string_view text, std::string_view file) { return Parser(text, file).document(); }

void override_field(Field& root, std::string_view argument) {
  const std::string_view given = argument;
  if (argument.starts_with("--")) argument.remove_prefix(2);
  const std::size_t equals = argument.find('=');
  if (equals == std::string_view::npos)
    throw Error("command line", "'{}' has no value", shown(given))
        .hint("write --section.key=value")
        .as(Error::Kind::usage);
  const std::string_view text = argument.substr(equals + 1);
  Field value;
  try {
    value = Parser(text, "command line", 0).only_value();
  } catch (const Error&) {
    if (first_bad_utf8(text)) throw;
    value = Field(std::string(text));
  }
  const auto file = std::make_shared<const std::string>("command line");
  value.source = {file, 0};
  std::vector<std::string> path;
  try {
    path = Parser(argument.substr(0, equals), "command line", 0).only_key();
  } catch (const Error& error) {
    throw Error("command line", "'{}' is no key: {}", shown(given), error.faults().front().what)
        .hint("write --section.key=value")
        .as(Error::Kind::usage);
  }
  Field* at = &root;
  std::string so_far;
  for (const std::string& part : path) {
    if (at->is_null()) at->value = Field::Table{}, at->source = value.source;
    auto* table = std::get_if<Field::Table>(&at->value);
    if (!table)
      throw Error("command line", "'{}': key '{}' is {} ({}), not a table", shown(given), so_far, at->str(),
                  at->source.str())
          .as(Error::Kind::usage);
    auto found = std::find_if(table->begin(), table->end(), [&](const Member& m) { return m.key == part; });
    if (found == table->end()) found = table->insert(found, {part, Field()});
    at = &found->value;
    so_far += (so_far.empty() ? "" : ".") + part;
  }
  if (at->table() && !value.table())
    throw Error("command line", "'{}': '{}' is a section, not a key", shown(given), so_far)
        .hint("write --{}.key=value", so_far)
        .as(Error::Kind::usage);
  *at = std::move(value);
}

}  // namespace stretto
