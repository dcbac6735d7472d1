// A template, parsed. See chat_template.h.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stretto/tokenize/jinja_value.h"

namespace stretto::jinja {

struct Expr {
  enum class Kind : std::uint8_t {
    literal,
    name,        // text
    list,        // args
    dict,        // args: key, value, key, value, ...
    attribute,   // args[0].text
    item,        // args[0][args[1]]
    slice,       // args[0][args[1]:args[2]:args[3]]; a literal that is undefined was left out
    call,        // args[0](args[1], ..., named)
    filter,      // args[0] | text(args[1], ..., named)
    test,        // args[0] is text(args[1], ...)
    binary,      // args[0] text args[1]
    negate,      // text: "not" or "-"
    conditional  // args[1] if args[0] else args[2]
  } kind = Kind::literal;
  std::string text = {};
  Value literal = {};
  std::vector<Expr> args = {};
  std::vector<std::pair<std::string, Expr>> named = {};
  int line = 0;
};

struct Statement;
using Block = std::vector<Statement>;

struct Macro {
  std::string name;
  std::vector<std::pair<std::string, std::vector<Expr>>> params;  // with a default, or none
  Block body;
};

struct Statement {
  enum class Kind : std::uint8_t {
    text,
    output,
    branch,
    loop,
    set,
    set_block,
    macro,
    generation,
    leave,
    go_on
  } kind = Kind::text;
  std::string text = {};                // as it stands; set: the name, or the namespace
  std::string member = {};              // set: of a namespace
  std::vector<std::string> names = {};  // loop
  std::vector<Expr> exprs = {};         // output, set: one; branch: conditions; loop: what, and perhaps a condition
  std::vector<Block> blocks = {};       // branch: one per condition, and else; loop: body, else
  std::shared_ptr<const Macro> macro = {};
  int line = 0;
};

// Error with `where:line` and the name of what is not known.
Block parse_template(std::string_view source, std::string_view where);

}  // namespace stretto::jinja
