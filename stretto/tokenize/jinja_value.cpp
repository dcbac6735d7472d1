#include "stretto/tokenize/jinja_value.h"

#include <algorithm>
#include <cmath>

#include "stretto/base/error.h"
#include "stretto/base/match.h"

namespace stretto::jinja {
namespace {

// As Python's repr of a float.
std::string float_text(double x) {
  std::string s = fmt::format("{}", x);
  if (std::isfinite(x) && s.find_first_of(".en") == s.npos) s += ".0";
  return s;
}

std::string repr_of(const Value& v) {
  const std::string* s = v.string();
  if (!s) return text_of(v);
  std::string quoted = "'";
  for (const char c : *s) quoted += c == '\n' ? "\\n" : c == '\'' ? "\\'" : c == '\\' ? "\\\\" : std::string(1, c);
  return quoted + "'";
}

std::optional<double> number_of(const Value& v) {
  if (const i64* i = v.integer()) return double(*i);
  if (const double* d = std::get_if<double>(&v.v)) return *d;
  if (const bool* b = std::get_if<bool>(&v.v)) return *b ? 1 : 0;
  return std::nullopt;
}

}  // namespace

List* Value::list() const {
  const auto* p = std::get_if<std::shared_ptr<List>>(&v);
  return p ? p->get() : nullptr;
}
Dict* Value::dict() const {
  const auto* p = std::get_if<std::shared_ptr<Dict>>(&v);
  return p ? p->get() : nullptr;
}

const Value* Value::find(std::string_view key) const {
  const Dict* d = dict();
  if (!d) return nullptr;
  const auto it = std::find_if(d->begin(), d->end(), [&](const auto& member) { return member.first == key; });
  return it == d->end() ? nullptr : &it->second;
}

void Value::set(std::string_view key, Value value) {
  Dict* d = dict();
  STRETTO_ASSERT(d, "a dict");
  for (auto& [name, old] : *d)
    if (name == key) return void(old = std::move(value));
  d->emplace_back(key, std::move(value));
}

std::string_view Value::kind() const {
  constexpr std::string_view names[] = {"undefined", "none",   "a bool", "a number", "a number",
                                        "a string",  "a list", "a dict", "a macro"};
  return names[v.index()];
}

Value value_of(const Field& f) {
  return match(
      f.value, [](std::monostate) { return Value(nullptr); }, [](bool x) { return Value(x); },
      [](i64 x) { return Value(x); }, [](double x) { return Value(x); }, [](const std::string& x) { return Value(x); },
      [](const Field::Array& all) {
        List list;
        for (const Field& one : all) list.push_back(value_of(one));
        return Value(std::move(list));
      },
      [](const Field::Table& all) {
        Dict dict;
        for (const Member& m : all) dict.emplace_back(m.key, value_of(m.value));
        return Value(std::move(dict));
      });
}

bool is_true(const Value& v) {
  if (v.is_undefined() || v.is_none()) return false;
  if (const auto n = number_of(v)) return *n != 0;
  if (const std::string* s = v.string()) return !s->empty();
  if (const List* l = v.list()) return !l->empty();
  if (const Dict* d = v.dict()) return !d->empty();
  return true;
}

bool is_equal(const Value& a, const Value& b) {
  const auto x = number_of(a), y = number_of(b);
  if (x && y) return *x == *y;
  if (a.v.index() != b.v.index()) return false;
  if (a.string()) return *a.string() == *b.string();
  if (const List* l = a.list(), *r = b.list(); l)
    return std::equal(l->begin(), l->end(), r->begin(), r->end(), is_equal);
  if (const Dict* l = a.dict(), *r = b.dict(); l)
    return l->size() == r->size() && std::all_of(l->begin(), l->end(), [&](const auto& m) {
             const Value* other = b.find(m.first);
             return other && is_equal(m.second, *other);
           });
  return a.is_none() || a.is_undefined();
}

std::string text_of(const Value& v) {
  return match(
      v.v, [](Undefined) { return std::string(); }, [](std::nullptr_t) { return std::string("None"); },
      [](bool x) { return std::string(x ? "True" : "False"); }, [](i64 x) { return std::to_string(x); },
      [](double x) { return float_text(x); }, [](const std::string& x) { return x; },
      [](const std::shared_ptr<List>& all) {
        std::string text = "[";
        for (const Value& one : *all) text += (text.size() > 1 ? ", " : "") + repr_of(one);
        return text + "]";
      },
      [](const std::shared_ptr<Dict>& all) {
        std::string text = "{";
        for (const auto& [key, one] : *all)
          text += (text.size() > 1 ? ", " : "") + repr_of(Value(key)) + ": " + repr_of(one);
        return text + "}";
      },
      [](const Macro*) { return std::string("<macro>"); });
}

std::string json_of(const Value& v, std::optional<i64> indent, int depth) {
  if (v.is_none()) return "null";
  if (const bool* b = std::get_if<bool>(&v.v)) return *b ? "true" : "false";
  if (const std::string* s = v.string()) return json_text(*s);
  const List* list = v.list();
  const Dict* dict = v.dict();
  if (!list && !dict) return text_of(v);
  std::vector<std::string> parts;
  if (list)
    for (const Value& one : *list) parts.push_back(json_of(one, indent, depth + 1));
  if (dict)
    for (const auto& [key, one] : *dict) parts.push_back(json_text(key) + ": " + json_of(one, indent, depth + 1));
  const auto line = [&](int level) { return indent ? "\n" + std::string(*indent * level, ' ') : ""; };
  std::string text = list ? "[" : "{";
  for (std::size_t i = 0; i < parts.size(); ++i)
    text += (i == 0 ? "" : indent ? "," : ", ") + line(depth + 1) + parts[i];
  return text + (parts.empty() ? "" : line(depth)) + (list ? "]" : "}");
}

}  // namespace stretto::jinja
