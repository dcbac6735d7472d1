// What a template computes with: Python's values as far as chat templates need them.
//
//   Value v = value_of(read_json("{\"role\": \"user\"}", "chat"));
//   text_of(*v.find("role"));                      // user
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "stretto/base/id.h"
#include "stretto/formats/fields.h"

namespace stretto::jinja {

struct Macro;
struct Value;
using List = std::vector<Value>;
using Dict = std::vector<std::pair<std::string, Value>>;  // in order; no key twice
struct Undefined {};

// Lists, dicts and namespaces are shared, as in Python.
struct Value {
  std::variant<Undefined, std::nullptr_t, bool, i64, double, std::string, std::shared_ptr<List>, std::shared_ptr<Dict>,
               const Macro*>
      v;
  Value() = default;
  Value(std::nullptr_t) : v(nullptr) {}
  Value(bool x) : v(x) {}
  Value(i64 x) : v(x) {}
  Value(double x) : v(x) {}
  Value(std::string x) : v(std::move(x)) {}
  Value(std::string_view x) : v(std::string(x)) {}
  Value(const char*) = delete;  // would be a bool
  Value(List x) : v(std::make_shared<List>(std::move(x))) {}
  Value(Dict x) : v(std::make_shared<Dict>(std::move(x))) {}
  Value(const Macro* x) : v(x) {}

  bool is_undefined() const { return std::holds_alternative<Undefined>(v); }
  bool is_none() const { return std::holds_alternative<std::nullptr_t>(v); }
  const std::string* string() const { return std::get_if<std::string>(&v); }
  const i64* integer() const { return std::get_if<i64>(&v); }
  List* list() const;
  Dict* dict() const;
  const Value* find(std::string_view key) const;  // of a dict; null: not there
  void set(std::string_view key, Value value);    // of a dict
  std::string_view kind() const;                  // "a string"
};

Value value_of(const Field&);
bool is_true(const Value&);
bool is_equal(const Value&, const Value&);
std::string text_of(const Value&);  // as str() says it; undefined: nothing
// As json.dumps(ensure_ascii=False). `indent`: none: on one line.
std::string json_of(const Value&, std::optional<i64> indent = {}, int depth = 0);

}  // namespace stretto::jinja
