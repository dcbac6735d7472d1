// Filters, methods and tests of templates, each by its name. What is wrong is thrown as Trouble; who renders adds
// where.
//
//   apply_filter("trim", Value(std::string(" a ")), {});      // "a"
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stretto/tokenize/jinja_value.h"

namespace stretto::jinja {

struct Trouble {
  std::string what;
};

struct Arguments {
  std::vector<Value> positional = {};
  std::vector<std::pair<std::string, Value>> named = {};
  const Value* at(std::size_t i, std::string_view name = {}) const;  // null: not given
  std::string string_at(std::size_t i, std::string_view name, std::string_view otherwise) const;
};

std::vector<std::string> filter_names(), method_names(), test_names();
Value apply_filter(const std::string& name, const Value& of, const Arguments&);
Value call_method(const std::string& name, const Value& of, const Arguments&);
bool apply_test(const std::string& name, const Value& of, const Arguments&);

Value item_of(const Value& of, const Value& key);  // undefined: there is none
Value slice_of(const Value& of, const Value& begin, const Value& end, const Value& step);
List elements_of(const Value&);  // what a loop goes through: of a list, a dict's keys, a string's characters
bool is_in(const Value& what, const Value& where);

}  // namespace stretto::jinja
