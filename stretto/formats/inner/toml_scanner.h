// The words of TOML: characters, comments, strings, numbers, single keys. toml.cpp makes documents of them.
//
//   TomlScanner scan("0x1F # c", "run.toml");
//   Field number = scan.scalar();
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "stretto/formats/fields.h"
#include "stretto/formats/inner/json_events.h"

namespace stretto {

class TomlScanner {
 public:
  TomlScanner(std::string_view text, std::string_view file, int first_line = 1);  // Error when it is not UTF-8

  bool end() const { return at_ >= text_.size(); }
  char peek() const { return end() ? '\0' : text_[at_]; }
  bool starts(std::string_view s) const { return text_.substr(at_).starts_with(s); }
  bool take(std::string_view s) {
    const bool there = starts(s);
    if (there) at_ += s.size();
    return there;
  }
  void spaces();
  bool newline();
  void blank_lines();  // and comments
  void rest_of_line();

  std::string simple_key();
  Field scalar();  // a string of any form, a number, true or false

  Source source() const { return {file_, line_}; }
  std::string next_shown() const;  // what stands here, for a message
  template <class... A>
  [[noreturn]] void fail(fmt::format_string<A...> what, A&&... a) const {
    fail_line("column {}: {}", at_ - line_start_ + 1, fmt::format(what, std::forward<A>(a)...));
  }
  template <class... A>
  [[noreturn]] void fail_line(fmt::format_string<A...> what, A&&... a) const {  // a mistake without a column
    throw Error(source().str(), what, std::forward<A>(a)...);
  }
  void check_depth(int depth) const {
    if (depth > most_nesting) fail("nests deeper than {} levels", most_nesting);
  }

 private:
  void comment();
  void escape(std::string& out);
  std::string basic_string();
  std::string literal_string();
  std::string multi_line(char quote);
  Field plain();
  Field classify(std::string_view word) const;
  std::string digits(std::string_view word, std::string_view text, bool hex) const;
  Field integer(std::string_view word, std::string_view text, int base, bool negative) const;
  Field real(std::string_view word, std::string_view text, double sign) const;

  std::string_view text_;
  std::shared_ptr<const std::string> file_;
  std::size_t at_ = 0, line_start_ = 0;
  int line_;
};

}  // namespace stretto
