// JSON as a stream of events, for files too large or too plain for a tree. Strict: UTF-8 only, no key twice in one
// object, no nesting beyond 64, nothing after the value. Never recurses.
//
//   struct Keys : JsonEvents {
//     void key(std::string k) override { all.push_back(k); }
//     std::vector<std::string> all;
//   } keys;
//   parse_json(text, "config.json", keys);
#pragma once
#include <string>
#include <string_view>

#include "stretto/base/error.h"
#include "stretto/base/id.h"

namespace stretto {

class JsonEvents {
 public:
  virtual ~JsonEvents() = default;
  virtual void null() {}
  virtual void boolean(bool) {}
  virtual void integer(i64) {}
  virtual void number(double) {}  // every number that is not an i64
  virtual void string(std::string) {}
  virtual void key(std::string) {}
  virtual void begin_object() {}
  virtual void end_object() {}
  virtual void begin_array() {}
  virtual void end_array() {}

  int line = 1;  // of the event
};

inline constexpr int most_nesting = 64;
void parse_json(std::string_view text, std::string_view file, JsonEvents& events);

}  // namespace stretto
