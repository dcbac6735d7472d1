#include "stretto/tokenize/inner/jinja_calls.h"

#include <algorithm>
#include <functional>
#include <map>

#include "stretto/base/text.h"

namespace stretto::jinja {
namespace {

constexpr std::string_view blank_characters = " \t\n\r\v\f";

using Call = Value (*)(const Value&, const Arguments&);
using Test = bool (*)(const Value&, const Arguments&);

const std::string& need_string(const Value& v) {
  if (!v.string()) throw Trouble{fmt::format("a string is expected, and this is {}", v.kind())};
  return *v.string();
}

std::vector<std::string> characters(std::string_view s) {
  std::vector<std::string> all;
  for (const char c : s) {
    if (all.empty() || (c & 0xc0) != 0x80) all.emplace_back();
    all.back() += c;
  }
  return all;
}

std::string stripped(std::string_view s, std::string_view of, bool left, bool right) {
  while (left && !s.empty() && of.find(s.front()) != of.npos) s.remove_prefix(1);
  while (right && !s.empty() && of.find(s.back()) != of.npos) s.remove_suffix(1);
  return std::string(s);
}

std::string replaced(std::string s, const std::string& from, const std::string& to) {
  if (from.empty()) return s;
  for (std::size_t at = 0; (at = s.find(from, at)) != s.npos; at += to.size()) s.replace(at, from.size(), to);
  return s;
}

char raised(char c) { return c >= 'a' && c <= 'z' ? char(c - 32) : c; }
char lowered(char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; }
std::string upper(std::string s) { return std::transform(s.begin(), s.end(), s.begin(), raised), s; }
std::string lower(std::string s) { return std::transform(s.begin(), s.end(), s.begin(), lowered), s; }

// The first letter of every word, or of the first one, is large and the others are small.
std::string capitals(std::string s, bool every) {
  bool first = true;
  for (char& c : s) {
    const bool letter = raised(c) != lowered(c);
    c = first ? raised(c) : lowered(c);
    first = every && !letter;
  }
  return s;
}

List split(const std::string& s, const Value* separator, std::optional<i64> most) {
  List parts;
  if (!separator || separator->is_none()) {
    for (std::size_t at = s.find_first_not_of(blank_characters); at != s.npos;) {
      const std::size_t end = std::min(s.find_first_of(blank_characters, at), s.size());
      parts.emplace_back(s.substr(at, end - at));
      at = s.find_first_not_of(blank_characters, end);
    }
    return parts;
  }
  const std::string& sign = need_string(*separator);
  if (sign.empty()) throw Trouble{"split() with an empty separator"};
  std::size_t at = 0;
  for (std::size_t end; (end = s.find(sign, at)) != s.npos && (!most || std::ssize(parts) < *most);
       at = end + sign.size())
    parts.emplace_back(s.substr(at, end - at));
  parts.emplace_back(s.substr(at));
  return parts;
}

i64 length_of(const Value& v) {
  if (v.list()) return std::ssize(*v.list());
  if (v.dict()) return std::ssize(*v.dict());
  return std::ssize(characters(need_string(v)));
}

List pairs_of(const Value& v) {
  if (!v.dict()) throw Trouble{fmt::format("items of {}", v.kind())};
  List all;
  for (const auto& [key, value] : *v.dict()) all.emplace_back(List{Value(key), value});
  return all;
}

// Those that pass a test, or are true; by an attribute: those whose attribute does.
template <bool by_attribute, bool wanted>
Value chosen(const Value& v, const Arguments& a) {
  const std::size_t first = by_attribute ? 1 : 0;
  const std::string attribute = by_attribute ? a.string_at(0, "", "") : "", test = a.string_at(first, "", "");
  Arguments rest;
  for (std::size_t i = first + 1; i < a.positional.size(); ++i) rest.positional.push_back(a.positional[i]);
  List all;
  for (const Value& one : elements_of(v)) {
    const Value found = by_attribute ? item_of(one, Value(attribute)) : one;
    if ((test.empty() ? is_true(found) : apply_test(test, found, rest)) == wanted) all.push_back(one);
  }
  return all;
}

double compared_number(const Value& v) {
  if (const double* d = std::get_if<double>(&v.v)) return *d;
  if (!v.integer()) throw Trouble{fmt::format("{} is compared by size", v.kind())};
  return double(*v.integer());
}

// Texts without regard to large and small letters, as Jinja sorts them.
bool comes_before(const Value& a, const Value& b) {
  return a.string() && b.string() ? lower(*a.string()) < lower(*b.string()) : compared_number(a) < compared_number(b);
}

Value sorted(const Value& v, const Arguments& a) {
  List all = elements_of(v);
  const auto key = [by = a.at(2, "attribute")](const Value& one) { return by ? item_of(one, *by) : one; };
  std::stable_sort(all.begin(), all.end(),
                   [&](const Value& x, const Value& y) { return comes_before(key(x), key(y)); });
  if (const Value* turned = a.at(0, "reverse"); turned && is_true(*turned)) std::reverse(all.begin(), all.end());
  return all;
}

Value sorted_pairs(const Value& v, const Arguments&) {
  List all = pairs_of(v);
  std::stable_sort(all.begin(), all.end(),
                   [](const Value& x, const Value& y) { return comes_before((*x.list())[0], (*y.list())[0]); });
  return all;
}

Value each_once(const Value& v, const Arguments&) {
  List all;
  for (const Value& one : elements_of(v))
    if (std::none_of(all.begin(), all.end(), [&](const Value& x) { return is_equal(x, one); })) all.push_back(one);
  return all;
}

Value mapped(const Value& v, const Arguments& a) {
  List all;
  const Value* attribute = a.at(9, "attribute");
  for (const Value& one : elements_of(v))
    all.push_back(attribute ? item_of(one, *attribute) : apply_filter(a.string_at(0, "", ""), one, {}));
  return all;
}

Value joined_text(const Value& v, const Arguments& a) {
  std::vector<std::string> parts;
  for (const Value& one : elements_of(v)) parts.push_back(text_of(one));
  return join(parts, a.string_at(0, "d", ""));
}

Value whole_number_of(const Value& v, const Arguments&) {
  if (v.integer()) return v;
  if (const double* d = std::get_if<double>(&v.v)) return i64(*d);
  try {
    return i64(std::stoll(need_string(v)));
  } catch (const std::exception&) {
    return i64(0);
  }
}

Value otherwise(const Value& v, const Arguments& a) {
  const Value* also = a.at(1, "boolean");
  const bool missing = v.is_undefined() || (also && is_true(*also) && !is_true(v));
  const Value* other = a.at(0, "default_value");
  return !missing ? v : other ? *other : Value(std::string());
}

Value reversed(const Value& v, const Arguments&) {
  List all = elements_of(v);
  std::reverse(all.begin(), all.end());
  return all;
}

const std::map<std::string, Call>& filters() {
  static const std::map<std::string, Call> all{
      {"trim",
       [](const Value& v, const Arguments& a) {
         return Value(stripped(text_of(v), a.string_at(0, "chars", blank_characters), true, true));
       }},
      {"length", [](const Value& v, const Arguments&) { return Value(length_of(v)); }},
      {"count", [](const Value& v, const Arguments&) { return Value(length_of(v)); }},
      {"upper", [](const Value& v, const Arguments&) { return Value(upper(text_of(v))); }},
      {"lower", [](const Value& v, const Arguments&) { return Value(lower(text_of(v))); }},
      {"title", [](const Value& v, const Arguments&) { return Value(capitals(text_of(v), true)); }},
      {"capitalize", [](const Value& v, const Arguments&) { return Value(capitals(text_of(v), false)); }},
      {"string", [](const Value& v, const Arguments&) { return Value(text_of(v)); }},
      {"safe", [](const Value& v, const Arguments&) { return v; }},
      {"int", whole_number_of},
      {"default", otherwise},
      {"d", otherwise},
      {"list", [](const Value& v, const Arguments&) { return Value(elements_of(v)); }},
      {"items", [](const Value& v, const Arguments&) { return Value(pairs_of(v)); }},
      {"first", [](const Value& v, const Arguments&) { return item_of(Value(elements_of(v)), Value(i64(0))); }},
      {"last", [](const Value& v, const Arguments&) { return item_of(Value(elements_of(v)), Value(i64(-1))); }},
      {"reverse", reversed},
      {"join", joined_text},
      {"map", mapped},
      {"select", chosen<false, true>},
      {"reject", chosen<false, false>},
      {"selectattr", chosen<true, true>},
      {"rejectattr", chosen<true, false>},
      {"sort", sorted},
      {"dictsort", sorted_pairs},
      {"unique", each_once},
      {"replace",
       [](const Value& v, const Arguments& a) {
         return Value(replaced(text_of(v), a.string_at(0, "old", ""), a.string_at(1, "new", "")));
       }},
      {"tojson",
       [](const Value& v, const Arguments& a) {
         const Value* indent = a.at(0, "indent");
         const i64* given = indent ? indent->integer() : nullptr;
         return Value(json_of(v, given && *given >= 0 ? std::optional(*given) : std::nullopt));
       }},
  };
  return all;
}

template <bool left, bool right>
Value strip(const Value& v, const Arguments& a) {
  return stripped(need_string(v), a.string_at(0, "chars", blank_characters), left, right);
}
template <bool begin>
Value has_end(const Value& v, const Arguments& a) {
  const std::string& s = need_string(v);
  const auto fits = [&](const Value& end) {
    return begin ? s.starts_with(need_string(end)) : s.ends_with(need_string(end));
  };
  const Value* end = a.at(0);
  if (!end) throw Trouble{"startswith() and endswith() need a string"};
  return end->list() ? std::any_of(end->list()->begin(), end->list()->end(), fits) : fits(*end);
}

Value parts_of(const Value& v, const Arguments& a) {
  const Value* most = a.at(1, "maxsplit");
  const i64* given = most ? most->integer() : nullptr;
  return split(need_string(v), a.at(0, "sep"), given && *given >= 0 ? std::optional(*given) : std::nullopt);
}

Value member_or(const Value& v, const Arguments& a) {
  if (!v.dict()) throw Trouble{fmt::format("get() of {}", v.kind())};
  const Value* found = v.find(a.string_at(0, "key", ""));
  const Value* other = a.at(1, "default");
  return found ? *found : other ? *other : Value(nullptr);
}

Value changing(const Value& v, const Arguments&) { throw Trouble{fmt::format("{} would be changed", v.kind())}; }

const std::map<std::string, Call>& methods() {
  static const std::map<std::string, Call> all{
      {"strip", strip<true, true>},
      {"lstrip", strip<true, false>},
      {"rstrip", strip<false, true>},
      {"startswith", has_end<true>},
      {"endswith", has_end<false>},
      {"split", parts_of},
      {"upper", [](const Value& v, const Arguments&) { return Value(upper(need_string(v))); }},
      {"lower", [](const Value& v, const Arguments&) { return Value(lower(need_string(v))); }},
      {"title", [](const Value& v, const Arguments&) { return Value(capitals(need_string(v), true)); }},
      {"capitalize", [](const Value& v, const Arguments&) { return Value(capitals(need_string(v), false)); }},
      {"replace",
       [](const Value& v, const Arguments& a) {
         return Value(replaced(need_string(v), a.string_at(0, "old", ""), a.string_at(1, "new", "")));
       }},
      {"join",
       [](const Value& v, const Arguments& a) {
         return joined_text(a.positional.empty() ? Value(List()) : a.positional[0], {.positional = {v}});
       }},
      {"items", [](const Value& v, const Arguments&) { return Value(pairs_of(v)); }},
      {"keys", [](const Value& v, const Arguments&) { return Value(elements_of(v)); }},
      {"values",
       [](const Value& v, const Arguments&) {
         List values;
         for (const Value& pair : pairs_of(v)) values.push_back((*pair.list())[1]);
         return Value(std::move(values));
       }},
      {"get", member_or},
      // As in transformers: a template that has them is read, and fails where it comes to one.
      {"append", changing},
      {"pop", changing},
  };
  return all;
}

bool is_number(const Value& v, const Arguments&) { return v.integer() || std::holds_alternative<double>(v.v); }

const std::map<std::string, Test>& tests() {
  static const std::map<std::string, Test> all{
      {"defined", [](const Value& v, const Arguments&) { return !v.is_undefined(); }},
      {"undefined", [](const Value& v, const Arguments&) { return v.is_undefined(); }},
      {"none", [](const Value& v, const Arguments&) { return v.is_none(); }},
      {"string", [](const Value& v, const Arguments&) { return v.string() != nullptr; }},
      {"mapping", [](const Value& v, const Arguments&) { return v.dict() != nullptr; }},
      {"iterable", [](const Value& v, const Arguments&) { return v.string() || v.list() || v.dict(); }},
      {"sequence", [](const Value& v, const Arguments&) { return v.string() || v.list() || v.dict(); }},
      {"number", is_number},
      {"integer", [](const Value& v, const Arguments&) { return v.integer() != nullptr; }},
      {"float", [](const Value& v, const Arguments&) { return std::holds_alternative<double>(v.v); }},
      {"boolean", [](const Value& v, const Arguments&) { return std::holds_alternative<bool>(v.v); }},
      {"true", [](const Value& v, const Arguments&) { return is_equal(v, Value(true)); }},
      {"false", [](const Value& v, const Arguments&) { return std::holds_alternative<bool>(v.v) && !is_true(v); }},
      {"odd", [](const Value& v, const Arguments&) { return v.integer() && *v.integer() % 2 != 0; }},
      {"even", [](const Value& v, const Arguments&) { return v.integer() && *v.integer() % 2 == 0; }},
      {"equalto", [](const Value& v, const Arguments& a) { return a.at(0) && is_equal(v, *a.at(0)); }},
      {"eq", [](const Value& v, const Arguments& a) { return a.at(0) && is_equal(v, *a.at(0)); }},
      {"ne", [](const Value& v, const Arguments& a) { return a.at(0) && !is_equal(v, *a.at(0)); }},
      {"in", [](const Value& v, const Arguments& a) { return a.at(0) && is_in(v, *a.at(0)); }},
  };
  return all;
}

template <class Table>
std::vector<std::string> names_in(const Table& table) {
  std::vector<std::string> names;
  for (const auto& [name, f] : table) names.push_back(name);
  return names;
}
template <class Table>
auto entry(const Table& table, const std::string& name) {
  const auto it = table.find(name);
  if (it == table.end()) throw Trouble{fmt::format("'{}' is not supported", name)};
  return it->second;
}

}  // namespace

const Value* Arguments::at(std::size_t i, std::string_view name) const {
  if (i < positional.size()) return &positional[i];
  for (const auto& [key, value] : named)
    if (!name.empty() && key == name) return &value;
  return nullptr;
}

std::string Arguments::string_at(std::size_t i, std::string_view name, std::string_view otherwise) const {
  const Value* v = at(i, name);
  return v && !v->is_none() ? need_string(*v) : std::string(otherwise);
}

std::vector<std::string> filter_names() { return names_in(filters()); }
std::vector<std::string> method_names() { return names_in(methods()); }
std::vector<std::string> test_names() { return names_in(tests()); }

Value apply_filter(const std::string& name, const Value& of, const Arguments& a) {
  return entry(filters(), name)(of, a);
}
Value call_method(const std::string& name, const Value& of, const Arguments& a) {
  return entry(methods(), name)(of, a);
}
bool apply_test(const std::string& name, const Value& of, const Arguments& a) { return entry(tests(), name)(of, a); }

Value item_of(const Value& of, const Value& key) {
  if (of.is_undefined()) throw Trouble{fmt::format("'{}' of what is not defined", text_of(key))};
  if (of.dict()) {
    const Value* found = key.string() ? of.find(*key.string()) : nullptr;
    return found ? *found : Value();
  }
  if (!key.integer()) return Value();
  const List all = of.list() ? *of.list() : of.string() ? elements_of(of) : List();
  const i64 i = *key.integer() < 0 ? *key.integer() + std::ssize(all) : *key.integer();
  return i >= 0 && i < std::ssize(all) ? all[i] : Value();
}

Value slice_of(const Value& of, const Value& begin, const Value& end, const Value& step) {
  const List all = elements_of(of);
  const i64 n = std::ssize(all), by = step.integer() ? *step.integer() : 1;
  if (by == 0) throw Trouble{"a slice with step 0"};
  const auto place = [&](const Value& v, i64 otherwise) {
    if (!v.integer()) return otherwise;
    const i64 at = *v.integer() < 0 ? *v.integer() + n : *v.integer();
    return by > 0 ? std::clamp<i64>(at, 0, n) : std::clamp<i64>(at, -1, n - 1);
  };
  List part;
  const i64 first = place(begin, by > 0 ? 0 : n - 1), last = place(end, by > 0 ? n : -1);
  for (i64 i = first; by > 0 ? i < last : i > last; i += by) part.push_back(all[i]);
  return of.string() ? joined_text(Value(std::move(part)), {}) : Value(std::move(part));
}

List elements_of(const Value& v) {
  List all;
  if (v.list()) return *v.list();
  if (v.dict())
    for (const auto& [key, value] : *v.dict()) all.emplace_back(key);
  else if (v.string())
    for (std::string& c : characters(*v.string())) all.emplace_back(std::move(c));
  else if (!v.is_undefined())
    throw Trouble{fmt::format("{} is gone through", v.kind())};
  return all;
}

bool is_in(const Value& what, const Value& where) {
  if (where.string()) return where.string()->find(need_string(what)) != std::string::npos;
  const List all = elements_of(where);
  return std::any_of(all.begin(), all.end(), [&](const Value& v) { return is_equal(v, what); });
}

}  // namespace stretto::jinja
