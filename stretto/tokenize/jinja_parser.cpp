#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "stretto/base/error.h"
#include "stretto/base/text.h"
#include "stretto/tokenize/jinja_ast.h"
#include "stretto/tokenize/inner/jinja_calls.h"
#include "stretto/tokenize/inner/jinja_lexer.h"

namespace stretto::jinja {
namespace {

constexpr int deepest = 100;

using Kind = Expr::Kind;

// The words of one tag.
class Tag {
 public:
  Tag(const std::vector<Word>& words, const std::string& where) : words_(words), where_(where) {}

  const Word& peek(std::size_t ahead = 0) const { return words_[std::min(at_ + ahead, words_.size() - 1)]; }
  bool is(std::string_view text) const {
    return peek().text == text && (peek().kind == Word::Kind::sign || peek().kind == Word::Kind::name);
  }
  bool take(std::string_view text) {
    if (!is(text)) return false;
    ++at_;
    return true;
  }
  void need(std::string_view text) {
    if (!take(text)) fail(fmt::format("'{}' stands where '{}' is expected", peek().text, text));
  }
  std::string name() {
    if (peek().kind != Word::Kind::name) fail(fmt::format("'{}' stands where a name is expected", peek().text));
    return words_[at_++].text;
  }
  void finish() const {
    if (peek().kind != Word::Kind::end) fail(fmt::format("'{}' is not understood here", peek().text));
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(fmt::format("{}, line {}", where_, peek().line), "{}", what)
        .hint("templates are read in the part of Jinja that docs/finetune.md describes");
  }
  void must_be_known(const std::string& name, const std::vector<std::string>& all, std::string_view what) const {
    if (std::find(all.begin(), all.end(), name) == all.end())
      throw Error(fmt::format("{}, line {}", where_, peek().line), "the {} '{}' is not supported", what, name)
          .hint("there are {}", join(all, ", "));
  }

  Expr expression() {
    if (++depth_ > deepest) fail("an expression is too deep");
    Expr e = logical_or();
    while (is("if")) {
      const int line = words_[at_++].line;
      Expr condition = logical_or();
      Expr other{.line = line};
      if (take("else")) other = expression();
      e = {Kind::conditional, {}, {}, {std::move(condition), std::move(e), std::move(other)}, {}, line};
    }
    --depth_;
    return e;
  }
  // Of a loop: an "if" after it is the loop's.
  Expr without_condition() { return logical_or(); }

  // "a, b" becomes a list where a tuple may stand.
  Expr tuple() {
    Expr first = expression();
    if (!is(",")) return first;
    Expr all{Kind::list, {}, {}, {std::move(first)}, {}, peek().line};
    while (take(",")) all.args.push_back(expression());
    return all;
  }

 private:
  Expr binary(std::string sign, Expr left, Expr right, int line) {
    return {Kind::binary, std::move(sign), {}, {std::move(left), std::move(right)}, {}, line};
  }
  Expr logical_or() {
    Expr e = logical_and();
    while (is("or")) {
      const int line = words_[at_++].line;
      e = binary("or", std::move(e), logical_and(), line);
    }
    return e;
  }
  Expr logical_and() {
    Expr e = logical_not();
    while (is("and")) {
      const int line = words_[at_++].line;
      e = binary("and", std::move(e), logical_not(), line);
    }
    return e;
  }
  Expr logical_not() {
    if (!is("not")) return comparison();
    const int line = words_[at_++].line;
    if (++depth_ > deepest) fail("an expression is too deep");
    Expr e{Kind::negate, "not", {}, {logical_not()}, {}, line};
    --depth_;
    return e;
  }
  Expr comparison() {
    Expr e = level(0);
    for (;;) {
      const int line = peek().line;
      const bool inverted = is("not") && peek(1).text == "in";
      if (inverted) ++at_;
      std::string sign = peek().text;
      if (!(is("==") || is("!=") || is("<") || is(">") || is("<=") || is(">=") || is("in"))) return e;
      ++at_;
      e = binary(inverted ? "not in" : sign, std::move(e), level(0), line);
    }
  }
  // Signs of growing strength; ~ binds as Jinja has it.
  Expr level(std::size_t strength) {
    static const std::vector<std::vector<std::string_view>> signs{{"+", "-"}, {"~"}, {"*", "/", "//", "%"}};
    if (strength == signs.size()) return unary();
    Expr e = level(strength + 1);
    for (;;) {
      const auto& here = signs[strength];
      if (peek().kind != Word::Kind::sign || std::find(here.begin(), here.end(), peek().text) == here.end()) return e;
      const Word sign = words_[at_++];
      e = binary(sign.text, std::move(e), level(strength + 1), sign.line);
    }
  }
  Expr unary() {
    if (++depth_ > deepest) fail("an expression is too deep");
    const int line = peek().line;
    Expr e = take("-") ? Expr{Kind::negate, "-", {}, {unary()}, {}, line} : filtered(postfixed(primary()));
    --depth_;
    return e;
  }

  void arguments(Expr& call) {
    while (!take(")")) {
      if (peek().kind == Word::Kind::name && peek(1).text == "=" && peek(1).kind == Word::Kind::sign) {
        std::string name = words_[at_].text;
        at_ += 2;
        call.named.emplace_back(std::move(name), expression());
      } else {
        call.args.push_back(expression());
      }
      if (!is(")")) need(",");
    }
  }
  Expr subscript(Expr of) {
    const int line = peek().line;
    const auto part = [&] { return is(":") || is("]") ? Expr{.line = line} : expression(); };
    Expr first = part();
    if (take("]")) return {Kind::item, {}, {}, {std::move(of), std::move(first)}, {}, line};
    need(":");
    Expr end = part(), step{.line = line};
    if (take(":")) step = part();
    need("]");
    return {Kind::slice, {}, {}, {std::move(of), std::move(first), std::move(end), std::move(step)}, {}, line};
  }
  Expr postfixed(Expr e) {
    for (;;) {
      const int line = peek().line;
      if (take(".")) {
        std::string of = peek().kind == Word::Kind::integer ? words_[at_++].text : name();
        e = {Kind::attribute, std::move(of), {}, {std::move(e)}, {}, line};
      } else if (take("[")) {
        e = subscript(std::move(e));
      } else if (take("(")) {
        Expr call{Kind::call, {}, {}, {std::move(e)}, {}, line};
        arguments(call);
        if (call.args[0].kind == Kind::attribute) must_be_known(call.args[0].text, method_names(), "method");
        e = std::move(call);
      } else {
        return e;
      }
    }
  }
  Expr filtered(Expr e) {
    for (;;) {
      const int line = peek().line;
      if (take("|")) {
        Expr f{Kind::filter, name(), {}, {std::move(e)}, {}, line};
        must_be_known(f.text, filter_names(), "filter");
        if (take("(")) arguments(f);
        e = postfixed(std::move(f));
      } else if (is("is")) {
        ++at_;
        const bool inverted = take("not");
        Expr t{Kind::test, name(), {}, {std::move(e)}, {}, line};
        must_be_known(t.text, test_names(), "test");
        if (take("("))
          arguments(t);
        else if (t.text == "equalto" || t.text == "eq" || t.text == "ne" || t.text == "in")
          t.args.push_back(primary());
        e = inverted ? Expr{Kind::negate, "not", {}, {std::move(t)}, {}, line} : std::move(t);
      } else {
        return e;
      }
    }
  }
  Expr primary() {
    const Word w = peek();
    const auto literal = [&](Value v) { return ++at_, Expr{.literal = std::move(v), .line = w.line}; };
    if (w.kind == Word::Kind::string) {
      Expr e = literal(Value(w.text));
      while (peek().kind == Word::Kind::string) e.literal = Value(*e.literal.string() + words_[at_++].text);
      return e;
    }
    if (w.kind == Word::Kind::integer) {
      i64 n = 0;
      if (std::from_chars(w.text.data(), w.text.data() + w.text.size(), n).ec != std::errc())
        fail(fmt::format("{} is too large", w.text));
      return literal(Value(n));
    }
    if (w.kind == Word::Kind::real) return literal(Value(std::stod(w.text)));
    if (w.kind == Word::Kind::name) {
      if (w.text == "true" || w.text == "True") return literal(Value(true));
      if (w.text == "false" || w.text == "False") return literal(Value(false));
      if (w.text == "none" || w.text == "None") return literal(Value(nullptr));
      return ++at_, Expr{Kind::name, w.text, {}, {}, {}, w.line};
    }
    if (take("(")) return group(w.line);
    if (take("[")) return elements(w.line);
    if (take("{")) return members(w.line);
    fail(fmt::format("'{}' stands where a value is expected", w.text));
  }
  Expr group(int line) {
    if (take(")")) return {Kind::list, {}, {}, {}, {}, line};
    Expr e = tuple();
    need(")");
    return e;
  }
  Expr elements(int line) {
    Expr e{Kind::list, {}, {}, {}, {}, line};
    while (!take("]")) {
      e.args.push_back(expression());
      if (!is("]")) need(",");
    }
    return e;
  }
  Expr members(int line) {
    Expr e{Kind::dict, {}, {}, {}, {}, line};
    while (!take("}")) {
      e.args.push_back(expression());
      need(":");
      e.args.push_back(expression());
      if (!is("}")) need(",");
    }
    return e;
  }

  const std::vector<Word>& words_;
  const std::string& where_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

class Parser {
 public:
  Parser(std::string_view source, std::string_view where) : where_(where), all_(stretches_of(source, where)) {}

  Block run() {
    Block b = block({});
    if (at_ < all_.size()) fail(fmt::format("'{}' ends nothing", all_[at_].words[0].text));
    return b;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    const int line = at_ < all_.size() ? all_[at_].line : (all_.empty() ? 1 : all_.back().line);
    throw Error(fmt::format("{}, line {}", where_, line), "{}", what)
        .hint("templates are read in the part of Jinja that docs/finetune.md describes");
  }

  // Until a block tag whose first word is one of `ends`, which stays.
  Block block(const std::set<std::string>& ends) {
    if (++depth_ > deepest) fail("blocks are too deep");
    Block b;
    for (; at_ < all_.size();) {
      const Stretch& s = all_[at_];
      if (s.kind == Stretch::Kind::text) {
        b.push_back({.text = s.text, .line = s.line});
        ++at_;
      } else if (s.kind == Stretch::Kind::output) {
        Tag tag(s.words, where_);
        b.push_back({.kind = Statement::Kind::output, .exprs = {tag.tuple()}, .line = s.line});
        tag.finish();
        ++at_;
      } else if (is_end(s, ends)) {
        break;
      } else {
        b.push_back(statement(s));
      }
    }
    if (at_ == all_.size() && !ends.empty()) fail(fmt::format("'{}' is missing at the end", *ends.rbegin()));
    --depth_;
    return b;
  }
  static bool is_end(const Stretch& s, const std::set<std::string>& ends) {
    static const std::set<std::string> all{"endif", "else", "elif", "endfor", "endset", "endmacro", "endgeneration"};
    return ends.contains(s.words[0].text) || all.contains(s.words[0].text);
  }
  void end(const std::string& word) {
    if (at_ >= all_.size() || all_[at_].words[0].text != word)
      fail(fmt::format("'{}' stands where '{}' is expected", at_ < all_.size() ? all_[at_].words[0].text : "the end",
                       word));
    ++at_;
  }

  Statement statement(const Stretch& s) {
    Tag tag(s.words, where_);
    const std::string word = tag.name();
    ++at_;
    if (word == "if") return branch(tag, s.line);
    if (word == "for") return loop(tag, s.line);
    if (word == "set") return assignment(tag, s.line);
    if (word == "macro") return macro(tag, s.line);
    if (word == "generation") {
      Statement g{.kind = Statement::Kind::generation, .blocks = {block({"endgeneration"})}, .line = s.line};
      end("endgeneration");
      return g;
    }
    if (word == "break") return {.kind = Statement::Kind::leave, .line = s.line};
    if (word == "continue") return {.kind = Statement::Kind::go_on, .line = s.line};
    --at_;
    fail(fmt::format("the statement '{}' is not supported", word));
  }
  Statement branch(Tag& tag, int line) {
    Statement s{.kind = Statement::Kind::branch, .line = line};
    s.exprs.push_back(tag.expression());
    tag.finish();
    s.blocks.push_back(block({"endif"}));
    for (;;) {
      if (at_ >= all_.size()) fail("'endif' is missing at the end");
      Tag next(all_[at_].words, where_);
      const std::string word = next.name();
      if (word == "endif") return ++at_, s;
      if (word == "elif")
        s.exprs.push_back(next.expression());
      else if (word != "else" || s.blocks.size() > s.exprs.size())
        fail(fmt::format("'{}' stands where 'endif' is expected", word));
      next.finish();
      ++at_;
      s.blocks.push_back(block({"endif"}));
    }
  }
  Statement loop(Tag& tag, int line) {
    Statement s{.kind = Statement::Kind::loop, .line = line};
    do s.names.push_back(tag.name());
    while (tag.take(","));
    tag.need("in");
    s.exprs.push_back(tag.without_condition());
    if (tag.take("if")) s.exprs.push_back(tag.expression());
    tag.finish();
    s.blocks.push_back(block({"endfor"}));
    if (at_ < all_.size() && all_[at_].words[0].text == "else") {
      ++at_;
      s.blocks.push_back(block({"endfor"}));
    }
    end("endfor");
    return s;
  }
  Statement assignment(Tag& tag, int line) {
    Statement s{.kind = Statement::Kind::set, .text = tag.name(), .line = line};
    if (tag.take(".")) s.member = tag.name();
    if (tag.take("=")) {
      s.exprs.push_back(tag.tuple());
      tag.finish();
      return s;
    }
    tag.finish();
    s.kind = Statement::Kind::set_block;
    s.blocks.push_back(block({"endset"}));
    end("endset");
    return s;
  }
  Statement macro(Tag& tag, int line) {
    auto m = std::make_shared<Macro>();
    m->name = tag.name();
    tag.need("(");
    while (!tag.take(")")) {
      m->params.emplace_back(tag.name(), std::vector<Expr>());
      if (tag.take("=")) m->params.back().second.push_back(tag.expression());
      if (!tag.is(")")) tag.need(",");
    }
    tag.finish();
    m->body = block({"endmacro"});
    end("endmacro");
    return {.kind = Statement::Kind::macro, .text = m->name, .macro = m, .line = line};
  }

  std::string where_;
  std::vector<Stretch> all_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Block parse_template(std::string_view source, std::string_view where) { return Parser(source, where).run(); }

}  // namespace stretto::jinja
