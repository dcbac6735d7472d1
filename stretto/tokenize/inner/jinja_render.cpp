#include "stretto/tokenize/inner/jinja_render.h"

#include <cmath>
#include <ctime>
#include <map>
#include <optional>

#include "stretto/base/error.h"
#include "stretto/base/match.h"
#include "stretto/tokenize/inner/jinja_calls.h"

namespace stretto::jinja {
namespace {

constexpr std::size_t most_text = std::size_t(1) << 28;
constexpr int most_calls = 50;
constexpr i64 most_range = 1'000'000;

using Kind = Expr::Kind;
enum class Flow : std::uint8_t { onward, leave, go_on };

// Variables of one block; inner ones see outer ones, and what they set is gone with them.
struct Scope {
  std::map<std::string, Value> own = {};
  Scope* outer = nullptr;
  const Value* find(const std::string& name) const {
    const auto it = own.find(name);
    return it != own.end() ? &it->second : outer ? outer->find(name) : nullptr;
  }
};

std::optional<double> number(const Value& v) {
  if (const i64* i = v.integer()) return double(*i);
  if (const double* d = std::get_if<double>(&v.v)) return *d;
  if (const bool* b = std::get_if<bool>(&v.v)) return *b ? 1 : 0;
  return std::nullopt;
}

class Renderer {
 public:
  explicit Renderer(const Value& variables) {
    for (const auto& [name, value] : *variables.dict()) top_.own[name] = value;
  }
  Rendered run(const Block& block) {
    try {
      Scope inner{.outer = &top_};
      execute(block, inner);
    } catch (const Trouble& t) {
      throw Failure{line_, t.what};
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] static void trouble(std::string what) { throw Trouble{std::move(what)}; }

  Flow execute(const Block& block, Scope& scope) {
    for (const Statement& s : block) {
      line_ = s.line;
      if (const Flow flow = execute(s, scope); flow != Flow::onward) return flow;
      if (out_.text.size() > most_text) trouble("the text is longer than 256 MiB");
    }
    return Flow::onward;
  }

  Flow execute(const Statement& s, Scope& scope) {
    switch (s.kind) {
      case Statement::Kind::text:
        out_.text += s.text;
        break;
      case Statement::Kind::output:
        out_.text += text_of(value(s.exprs[0], scope));
        break;
      case Statement::Kind::branch:
        return branch(s, scope);
      case Statement::Kind::loop:
        loop(s, scope);
        break;
      case Statement::Kind::set:
        assign(s, value(s.exprs[0], scope), scope);
        break;
      case Statement::Kind::set_block:
        assign(s, Value(captured(s.blocks[0], scope)), scope);
        break;
      case Statement::Kind::macro:
        scope.own[s.text] = Value(s.macro.get());
        break;
      case Statement::Kind::generation: {
        const std::size_t begin = out_.text.size();
        const Flow flow = execute(s.blocks[0], scope);
        out_.marked.emplace_back(begin, out_.text.size());
        return flow;
      }
      case Statement::Kind::leave:
        return Flow::leave;
      case Statement::Kind::go_on:
        return Flow::go_on;
    }
    return Flow::onward;
  }

  Flow branch(const Statement& s, Scope& scope) {
    for (std::size_t i = 0; i < s.exprs.size(); ++i)
      if (is_true(value(s.exprs[i], scope))) return execute(s.blocks[i], scope);
    return s.blocks.size() > s.exprs.size() ? execute(s.blocks.back(), scope) : Flow::onward;
  }

  void bind(const Statement& s, const Value& item, Scope& scope) const {
    if (s.names.size() == 1) return void(scope.own[s.names[0]] = item);
    const List parts = elements_of(item);
    if (parts.size() != s.names.size()) trouble(fmt::format("{} names and {} values", s.names.size(), parts.size()));
    for (std::size_t k = 0; k < parts.size(); ++k) scope.own[s.names[k]] = parts[k];
  }

  void loop(const Statement& s, Scope& scope) {
    List items = elements_of(value(s.exprs[0], scope));
    if (s.exprs.size() > 1) {
      List kept;
      for (const Value& item : items) {
        Scope inner{.outer = &scope};
        bind(s, item, inner);
        if (is_true(value(s.exprs[1], inner))) kept.push_back(item);
      }
      items = std::move(kept);
    }
    const i64 n = std::ssize(items);
    if (n == 0 && s.blocks.size() > 1) execute(s.blocks[1], scope);
    for (i64 i = 0; i < n; ++i) {
      Scope inner{.outer = &scope};
      bind(s, items[i], inner);
      const auto neighbour = [&](i64 k) { return k >= 0 && k < n ? items[k] : Value(); };
      inner.own["loop"] = Value(Dict{{"index", Value(i + 1)},
                                     {"index0", Value(i)},
                                     {"revindex", Value(n - i)},
                                     {"revindex0", Value(n - i - 1)},
                                     {"first", Value(i == 0)},
                                     {"last", Value(i == n - 1)},
                                     {"length", Value(n)},
                                     {"previtem", neighbour(i - 1)},
                                     {"nextitem", neighbour(i + 1)}});
      if (execute(s.blocks[0], inner) == Flow::leave) break;
    }
  }

  static void assign(const Statement& s, Value v, Scope& scope) {
    if (s.member.empty()) return void(scope.own[s.text] = std::move(v));
    const Value* found = scope.find(s.text);
    if (!found || !found->dict()) trouble(fmt::format("'{}' is no namespace", s.text));
    Value space = *found;  // shares what it holds
    space.set(s.member, std::move(v));
  }

  std::string captured(const Block& block, Scope& scope) {
    std::string before = std::move(out_.text);
    out_.text.clear();
    const std::size_t marks = out_.marked.size();
    Scope inner{.outer = &scope};
    execute(block, inner);
    if (out_.marked.size() > marks) trouble("'generation' inside of a macro or a set is not supported");
    return std::exchange(out_.text, std::move(before));
  }

  Arguments arguments(const Expr& e, Scope& scope) {
    Arguments a;
    for (std::size_t i = 1; i < e.args.size(); ++i) a.positional.push_back(value(e.args[i], scope));
    for (const auto& [name, arg] : e.named) a.named.emplace_back(name, value(arg, scope));
    return a;
  }

  Value value(const Expr& e, Scope& scope) {
    if (e.line > 0) line_ = e.line;
    switch (e.kind) {
      case Kind::literal:
        return e.literal;
      case Kind::name: {
        const Value* found = scope.find(e.text);
        return found ? *found : Value();
      }
      case Kind::list: {
        List all;
        for (const Expr& one : e.args) all.push_back(value(one, scope));
        return all;
      }
      case Kind::dict: {
        Value all{Dict()};
        for (std::size_t i = 0; i + 1 < e.args.size(); i += 2)
          all.set(text_of(value(e.args[i], scope)), value(e.args[i + 1], scope));
        return all;
      }
      case Kind::attribute:
        return item_of(value(e.args[0], scope), Value(e.text));
      case Kind::item:
        return item_of(value(e.args[0], scope), value(e.args[1], scope));
      case Kind::slice:
        return slice_of(value(e.args[0], scope), value(e.args[1], scope), value(e.args[2], scope),
                        value(e.args[3], scope));
      case Kind::call:
        return call(e, scope);
      case Kind::filter:
        return apply_filter(e.text, value(e.args[0], scope), arguments(e, scope));
      case Kind::test:
        return apply_test(e.text, value(e.args[0], scope), arguments(e, scope));
      case Kind::binary:
        return binary(e, scope);
      case Kind::negate:
        return negated(e, value(e.args[0], scope));
      case Kind::conditional:
        return value(e.args[is_true(value(e.args[0], scope)) ? 1 : 2], scope);
    }
    return {};
  }

  static Value negated(const Expr& e, const Value& v) {
    if (e.text == "not") return !is_true(v);
    if (v.integer()) return -*v.integer();
    if (const auto n = number(v)) return -*n;
    trouble(fmt::format("- of {}", v.kind()));
  }

  Value call(const Expr& e, Scope& scope) {
    const Expr& callee = e.args[0];
    if (callee.kind == Kind::attribute) {
      const Value of = value(callee.args[0], scope);
      if (of.is_undefined()) trouble(fmt::format("'{}()' of what is not defined", callee.text));
      return call_method(callee.text, of, arguments(e, scope));
    }
    const Arguments a = arguments(e, scope);
    const Value known = value(callee, scope);
    if (const auto* m = std::get_if<const Macro*>(&known.v)) return call_macro(**m, a, scope);
    if (callee.text == "raise_exception") throw Failure{line_, a.string_at(0, "", "no reason is given"), true};
    if (callee.text == "namespace" || callee.text == "dict") {
      Value space{Dict()};
      for (const auto& [name, v] : a.named) space.set(name, v);
      return space;
    }
    if (callee.text == "range") return numbers(a);
    if (callee.text == "strftime_now") return date(a.string_at(0, "", "%Y-%m-%d"));
    trouble(fmt::format("the function '{}' is not supported", callee.text));
  }

  static Value numbers(const Arguments& a) {
    const auto at = [&](std::size_t i, i64 otherwise) {
      const Value* v = a.at(i);
      return v && v->integer() ? *v->integer() : otherwise;
    };
    const bool one = a.positional.size() == 1;
    const i64 first = one ? 0 : at(0, 0), last = one ? at(0, 0) : at(1, 0), by = at(2, 1);
    if (by == 0 || std::abs(last - first) / std::abs(by) > most_range) trouble("range() of that many numbers");
    List all;
    for (i64 i = first; by > 0 ? i < last : i > last; i += by) all.emplace_back(i);
    return all;
  }

  static Value date(const std::string& form) {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    localtime_r(&now, &parts);
    char text[256];
    return std::string(text, std::strftime(text, sizeof text, form.c_str(), &parts));
  }

  Value call_macro(const Macro& m, const Arguments& a, Scope& scope) {
    if (++calls_ > most_calls) trouble(fmt::format("macro '{}' calls itself too often", m.name));
    Scope inner{.outer = &scope};
    for (std::size_t i = 0; i < m.params.size(); ++i) {
      const auto& [name, otherwise] = m.params[i];
      const Value* given = a.at(i, name);
      inner.own[name] = given ? *given : otherwise.empty() ? Value() : value(otherwise[0], scope);
    }
    std::string text = captured(m.body, inner);
    --calls_;
    return text;
  }

  Value binary(const Expr& e, Scope& scope) {
    const std::string& sign = e.text;
    Value left = value(e.args[0], scope);
    if (sign == "and") return is_true(left) ? value(e.args[1], scope) : left;
    if (sign == "or") return is_true(left) ? left : value(e.args[1], scope);
    const Value right = value(e.args[1], scope);
    if (sign == "==") return is_equal(left, right);
    if (sign == "!=") return !is_equal(left, right);
    if (sign == "in") return is_in(left, right);
    if (sign == "not in") return !is_in(left, right);
    if (sign == "~") return text_of(left) + text_of(right);
    if (sign == "<" || sign == ">" || sign == "<=" || sign == ">=") return ordered(sign, left, right);
    return arithmetic(sign, left, right);
  }

  static bool ordered(const std::string& sign, const Value& left, const Value& right) {
    const auto x = number(left), y = number(right);
    int order = 0;
    if (x && y)
      order = *x < *y ? -1 : *x > *y ? 1 : 0;
    else if (left.string() && right.string())
      order = left.string()->compare(*right.string());
    else
      trouble(fmt::format("{} {} {}", left.kind(), sign, right.kind()));
    return sign == "<" ? order < 0 : sign == ">" ? order > 0 : sign == "<=" ? order <= 0 : order >= 0;
  }

  static Value arithmetic(const std::string& sign, const Value& left, const Value& right) {
    if (sign == "+" && left.string() && right.string()) return *left.string() + *right.string();
    if (sign == "+" && left.list() && right.list()) {
      List all = *left.list();
      all.insert(all.end(), right.list()->begin(), right.list()->end());
      return all;
    }
    const auto x = number(left), y = number(right);
    if (!x || !y) trouble(fmt::format("{} {} {}", left.kind(), sign, right.kind()));
    if ((sign == "/" || sign == "//" || sign == "%") && *y == 0) trouble("a division by 0");
    const double r = sign == "+"    ? *x + *y
                     : sign == "-"  ? *x - *y
                     : sign == "*"  ? *x * *y
                     : sign == "/"  ? *x / *y
                     : sign == "//" ? std::floor(*x / *y)
                                    : *x - *y * std::floor(*x / *y);
    const bool whole = left.integer() && right.integer() && sign != "/" && std::abs(r) < 9e15;
    return whole ? Value(i64(r)) : Value(r);
  }

  Scope top_;
  Rendered out_;
  int line_ = 0, calls_ = 0;
};

}  // namespace

Rendered render(const Block& block, const Value& variables) { return Renderer(variables).run(block); }

}  // namespace stretto::jinja
