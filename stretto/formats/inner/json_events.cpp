#include "stretto/formats/inner/json_events.h"

#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "stretto/formats/utf8.h"

namespace stretto {
namespace {

// The parser reads through a Cursor, so that lines are known while events arrive.
struct Progress {
  int line = 1;           // of the next character
  int previous_line = 1;  // of the last character read: a number ends one character before the parser notices
};

struct Cursor {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at;
  Progress* progress;
  reference operator*() const { return *at; }
  Cursor& operator++() {
    progress->previous_line = progress->line;
    progress->line += *at++ == '\n';
    return *this;
  }
  Cursor operator++(int) {
    Cursor old = *this;
    ++*this;
    return old;
  }
  bool operator==(const Cursor& other) const { return at == other.at; }
};

class Adapter {
 public:
  Adapter(std::string_view file, const Progress& progress, JsonEvents& events)
      : file_(file), progress_(progress), events_(events) {}

  bool null() { return at_line(), events_.null(), true; }
  bool boolean(bool value) { return at_line(), events_.boolean(value), true; }
  bool number_integer(i64 value) { return at_line(), events_.integer(value), true; }
  bool number_unsigned(u64 value) {
    at_line();
    if (value <= u64(std::numeric_limits<i64>::max()))
      events_.integer(i64(value));
    else
      events_.number(double(value));
    return true;
  }
  bool number_float(double value, const std::string& text) {
    at_line();
    if (!std::isfinite(value)) throw Error(where(), "the number {} does not fit a double", shown(text));
    return events_.number(value), true;
  }
  bool string(std::string& value) { return at_line(), events_.string(std::move(value)), true; }
  bool binary(std::vector<std::uint8_t>&) { return false; }  // not in text JSON
  bool start_object(std::size_t) { return open(true), events_.begin_object(), true; }
  bool start_array(std::size_t) { return open(false), events_.begin_array(), true; }
  bool end_object() { return at_line(), keys_.pop_back(), events_.end_object(), true; }
  bool end_array() { return at_line(), keys_.pop_back(), events_.end_array(), true; }
  bool key(std::string& name) {
    at_line();
    if (!keys_.back().insert(name).second) throw Error(where(), "key '{}' stands twice in one object", shown(name));
    return events_.key(std::move(name)), true;
  }
  bool parse_error(std::size_t, const std::string& token, const nlohmann::json::exception& error) {
    at_line();
    // The library's text ends with what it expected; what stands before that (ids, positions) is said here better.
    std::string what = error.what();
    if (const auto cut = what.find("; last read"); cut != std::string::npos) what.resize(cut);
    if (const auto cut = what.rfind(" - "); cut != std::string::npos) what.erase(0, cut + 3);
    if (what.starts_with("[json")) what = "number out of range";
    throw Error(where(), "is not JSON: {} near '{}'", shown(what, 120), shown(token));
  }

 private:
  std::string where() const { return fmt::format("{}:{}", file_, events_.line); }
  void at_line() { events_.line = progress_.previous_line; }
  void open(bool object) {
    at_line();
    if (keys_.size() == most_nesting) throw Error(where(), "nests deeper than {} levels", most_nesting);
    keys_.emplace_back();
    if (object) keys_.back().reserve(4);
  }

  std::string file_;
  const Progress& progress_;
  JsonEvents& events_;
  std::vector<std::unordered_set<std::string>> keys_;  // of the objects (and arrays: empty) that are open
};

}  // namespace

void parse_json(std::string_view text, std::string_view file, JsonEvents& events) {
  if (const auto bad = first_bad_utf8(text)) {
    const auto line = 1 + std::count(text.begin(), text.begin() + std::ptrdiff_t(*bad), '\n');
    throw Error(fmt::format("{}:{}", file, line), "is not UTF-8: byte {} is 0x{:02x}", *bad,
                unsigned(static_cast<unsigned char>(text[*bad])));
  }
  Progress progress;
  Adapter adapter(file, progress, events);
  const char* const begin = text.data();
  nlohmann::json::sax_parse(Cursor{begin, &progress}, Cursor{begin + text.size(), &progress}, &adapter);
}

}  // namespace stretto
