#include "stretto/tokenize/inner/jinja_lexer.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "stretto/base/error.h"
#include "stretto/formats/utf8.h"

namespace stretto::jinja {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)); }

class Lexer {
 public:
  Lexer(std::string_view source, std::string_view where) : source_(source), where_(where) {}

  std::vector<Stretch> run() {
    while (at_ < source_.size()) {
      const std::size_t open = next_tag();
      std::string_view text = source_.substr(at_, open - at_);
      const bool minus = open + 2 < source_.size() && source_[open + 2] == '-';
      const bool plus = open + 2 < source_.size() && source_[open + 2] == '+';
      add_text(text, open, minus, plus);
      if (open == source_.size()) break;
      advance(open);
      const char kind = source_[open + 1];
      advance(open + 2 + (minus || plus ? 1 : 0));
      if (kind == '#')
        comment();
      else
        tag(kind == '{' ? Stretch::Kind::output : Stretch::Kind::block);
    }
    return std::move(all_);
  }

 private:
  [[noreturn]] void fail(int line, const std::string& what) const {
    throw Error(fmt::format("{}, line {}", where_, line), "{}", what).hint("is the template whole?");
  }

  std::size_t next_tag() const {
    for (std::size_t i = at_; i + 1 < source_.size(); ++i)
      if (source_[i] == '{' && (source_[i + 1] == '{' || source_[i + 1] == '%' || source_[i + 1] == '#')) return i;
    return source_.size();
  }

  void advance(std::size_t to) {
    line_ += int(std::count(source_.begin() + at_, source_.begin() + to, '\n'));
    at_ = to;
  }

  void add_text(std::string_view text, std::size_t open, bool minus, bool plus) {
    const int line = line_;
    if (strip_next_) {
      const std::size_t first = std::find_if_not(text.begin(), text.end(), is_blank) - text.begin();
      text.remove_prefix(first);
    } else if (trim_next_ && text.starts_with('\n')) {
      text.remove_prefix(1);
    }
    if (open < source_.size() && minus) {
      while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
    } else if (open < source_.size() && !plus && source_[open + 1] != '{') {
      // Blanks between the beginning of a line and a block are no text.
      const std::size_t last = text.find_last_not_of(" \t");
      const bool whole = last == text.npos && begins_line(text);
      if (whole || (last != text.npos && text[last] == '\n')) text = text.substr(0, whole ? 0 : last + 1);
    }
    strip_next_ = trim_next_ = false;
    if (!text.empty()) all_.push_back({Stretch::Kind::text, std::string(text), {}, line});
  }
  // Does nothing but this stand before it in its line?
  bool begins_line(std::string_view text) const {
    const std::size_t begin = text.data() - source_.data();
    return begin == 0 || source_[begin - 1] == '\n';
  }

  void comment() {
    const std::size_t end = source_.find("#}", at_);
    if (end == source_.npos) fail(line_, "a comment has no end");
    strip_next_ = end > at_ && source_[end - 1] == '-';
    advance(end + 2);
    trim_next_ = true;
  }

  void tag(Stretch::Kind kind) {
    Stretch s{kind, {}, {}, line_};
    const std::string_view close = kind == Stretch::Kind::output ? "}}" : "%}";
    int depth = 0;  // of braces: a dict may end right before the tag does
    for (;;) {
      while (at_ < source_.size() && is_blank(source_[at_])) advance(at_ + 1);
      const std::string_view rest = source_.substr(at_);
      if (rest.empty()) fail(s.line, fmt::format("a tag has no {}", close));
      const bool minus = rest[0] == '-' && rest.substr(1).starts_with(close);
      const bool plus = rest[0] == '+' && rest.substr(1).starts_with(close);
      if (minus || plus || (depth == 0 && rest.starts_with(close))) {
        advance(at_ + 2 + (minus || plus));
        strip_next_ = minus;
        trim_next_ = kind == Stretch::Kind::block && !plus;
        break;
      }
      s.words.push_back(word(rest));
      if (s.words.back().kind == Word::Kind::sign) {
        if (s.words.back().text == "{") ++depth;
        if (s.words.back().text == "}") --depth;
      }
    }
    s.words.push_back({Word::Kind::end, "the end of the tag", line_});
    all_.push_back(std::move(s));
  }

  Word word(std::string_view rest) {
    const int line = line_;
    const auto take = [&](std::size_t n, Word::Kind kind) {
      Word w{kind, std::string(rest.substr(0, n)), line};
      advance(at_ + n);
      return w;
    };
    if (rest[0] == '\'' || rest[0] == '"') return quoted(rest);
    if (is_digit(rest[0])) {
      std::size_t n = std::find_if_not(rest.begin(), rest.end(), is_digit) - rest.begin();
      if (n + 1 >= rest.size() || rest[n] != '.' || !is_digit(rest[n + 1])) return take(n, Word::Kind::integer);
      n = std::find_if_not(rest.begin() + n + 1, rest.end(), is_digit) - rest.begin();
      return take(n, Word::Kind::real);
    }
    if (is_word(rest[0]))
      return take(std::find_if_not(rest.begin(), rest.end(), is_word) - rest.begin(), Word::Kind::name);
    static constexpr std::array<std::string_view, 26> signs{"==", "!=", "<=", ">=", "//", "**", "<", ">", "=",
                                                            "+",  "-",  "*",  "/",  "%",  "~",  "|", "(", ")",
                                                            "[",  "]",  "{",  "}",  ",",  ":",  ".", ";"};
    for (const std::string_view sign : signs)
      if (rest.starts_with(sign)) return take(sign.size(), Word::Kind::sign);
    fail(line_, fmt::format("'{}' is no part of the language", shown(rest.substr(0, 1))));
  }

  Word quoted(std::string_view rest) {
    Word w{Word::Kind::string, {}, line_};
    std::size_t i = 1;
    for (; i < rest.size() && rest[i] != rest[0]; ++i) {
      if (rest[i] != '\\' || i + 1 >= rest.size()) {
        w.text += rest[i];
        continue;
      }
      const char c = rest[++i];
      w.text += c == 'n'                             ? "\n"
                : c == 't'                           ? "\t"
                : c == 'r'                           ? "\r"
                : c == '\\' || c == '\'' || c == '"' ? std::string(1, c)
                                                     : std::string("\\") + c;
    }
    if (i >= rest.size()) fail(line_, "a string has no end");
    advance(at_ + i + 1);
    return w;
  }

  std::string_view source_;
  std::string where_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool strip_next_ = false, trim_next_ = false;  // what the last tag asks of the text after it
  std::vector<Stretch> all_;
};

}  // namespace

std::vector<Stretch> stretches_of(std::string_view source, std::string_view where) {
  // As Jinja has it: one line end at the end of a template is not a part of it.
  if (source.ends_with('\n')) source.remove_suffix(1);
  return Lexer(source, where).run();
}

}  // namespace stretto::jinja
