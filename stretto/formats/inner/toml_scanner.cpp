#include "stretto/formats/inner/toml_scanner.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>

#include "stretto/formats/utf8.h"

namespace stretto {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_bare(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-'; }
// Everything but tab; a newline counts where the caller has not taken it.
bool is_control(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F; }

}  // namespace

TomlScanner::TomlScanner(std::string_view text, std::string_view file, int first_line)
    : text_(text), file_(std::make_shared<const std::string>(file)), line_(first_line) {
  if (const auto bad = first_bad_utf8(text)) {
    line_ += int(std::count(text.begin(), text.begin() + std::ptrdiff_t(*bad), '\n'));
    fail_line("is not UTF-8: byte {} is 0x{:02x}", *bad, unsigned(static_cast<unsigned char>(text[*bad])));
  }
  if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
}

void TomlScanner::spaces() {
  while (peek() == ' ' || peek() == '\t') ++at_;
}

bool TomlScanner::newline() {
  const bool there = take("\n") || take("\r\n");
  if (there) ++line_, line_start_ = at_;
  return there;
}

void TomlScanner::comment() {
  if (peek() != '#') return;
  while (!end() && peek() != '\n' && !starts("\r\n")) {
    if (is_control(peek())) fail("{} is not allowed in a comment", next_shown());
    ++at_;
  }
}

void TomlScanner::blank_lines() {
  do {
    spaces();
    comment();
  } while (newline());
}

void TomlScanner::rest_of_line() {
  spaces();
  comment();
  if (!end() && !newline()) fail("{} follows on the same line", next_shown());
}

std::string TomlScanner::next_shown() const {
  if (end()) return "the end";
  if (peek() == '\n' || starts("\r\n")) return "the end of the line";
  std::size_t n = 1;
  while (at_ + n < text_.size() && (static_cast<unsigned char>(text_[at_ + n]) & 0xC0) == 0x80) ++n;
  return fmt::format("'{}'", shown(text_.substr(at_, n)));
}

std::string TomlScanner::simple_key() {
  if (peek() == '"') return ++at_, basic_string();
  if (peek() == '\'') return ++at_, literal_string();
  const std::size_t begin = at_;
  while (is_bare(peek())) ++at_;
  if (at_ == begin) fail("a key is expected, not {}", next_shown());
  return std::string(text_.substr(begin, at_ - begin));
}

Field TomlScanner::scalar() {
  if (take("\"\"\"")) return Field(multi_line('"'));
  if (take("'''")) return Field(multi_line('\''));
  if (take("\"")) return Field(basic_string());
  if (take("'")) return Field(literal_string());
  return plain();
}

void TomlScanner::escape(std::string& out) {  // after the backslash
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

std::string TomlScanner::basic_string() {  // after the opening quote
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

std::string TomlScanner::literal_string() {
  const std::size_t begin = at_;
  while (!end() && peek() != '\'' && !is_control(peek())) ++at_;
  if (peek() != '\'') fail("a string has no end: {} where \"'\" is expected", next_shown());
  return std::string(text_.substr(begin, at_++ - begin));
}

std::string TomlScanner::multi_line(char quote) {
  const std::string three(3, quote);
  const int opened = line_;
  std::string out;
  newline();
  for (;;) {
    if (end()) fail_line("the string that begins in line {} has no end", opened);
    if (take(three)) {
      for (int i = 0; i < 2 && peek() == quote; ++i) out += quote, ++at_;  // up to two quotes may stand before the end
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

Field TomlScanner::plain() {
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

Field TomlScanner::classify(std::string_view word) const {
  if (word == "true") return Field(true);
  if (word == "false") return Field(false);
  const bool sign = word[0] == '+' || word[0] == '-';
  const std::string_view bare = word.substr(sign);
  const double minus = word[0] == '-' ? -1 : 1;
  if (bare == "inf") return Field(minus * std::numeric_limits<double>::infinity());
  if (bare == "nan") return Field(minus * std::numeric_limits<double>::quiet_NaN());
  if (bare.empty() || !is_digit(bare[0])) fail("'{}' is no value", shown(word));
  const bool date = bare.size() > 4 && bare[4] == '-' && std::all_of(bare.begin(), bare.begin() + 4, is_digit);
  if (date || bare.find(':') != std::string_view::npos) fail("'{}' is a date or a time; put it in quotes", shown(word));
  for (const auto& [prefix, base] : {std::pair{"0x", 16}, {"0o", 8}, {"0b", 2}})
    if (!sign && bare.starts_with(prefix)) return integer(word, bare.substr(2), base, false);
  if (bare.find_first_of(".eE") == std::string_view::npos) {
    if (bare.size() > 1 && bare[0] == '0') fail("'{}' begins with a zero", shown(word));
    return integer(word, bare, 10, word[0] == '-');
  }
  return real(word, bare, minus);
}

// Without the underscores, which may only stand between digits.
std::string TomlScanner::digits(std::string_view word, std::string_view text, bool hex) const {
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

Field TomlScanner::integer(std::string_view word, std::string_view text, int base, bool negative) const {
  const std::string clean = fmt::format("{}{}", negative ? "-" : "", digits(word, text, base == 16));
  i64 value = 0;
  const auto [stop, status] = std::from_chars(clean.data(), clean.data() + clean.size(), value, base);
  const bool at_end = stop == clean.data() + clean.size();
  if (status == std::errc::result_out_of_range && at_end) fail("'{}' does not fit 64 bits", shown(word));
  if (status != std::errc() || !at_end || (base != 10 && clean[0] == '-')) fail("'{}' is no number", shown(word));
  return Field(value);
}

Field TomlScanner::real(std::string_view word, std::string_view text, double sign) const {
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

}  // namespace stretto
