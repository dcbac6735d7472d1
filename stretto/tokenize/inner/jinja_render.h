// A parsed template at work.
//
//   Rendered r = render(block, variables);       // Trouble with the line in it
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "stretto/tokenize/jinja_ast.h"

namespace stretto::jinja {

struct Rendered {
  std::string text;
  std::vector<std::pair<std::size_t, std::size_t>> marked;  // by {% generation %}: from and to
};
struct Failure {
  int line = 0;
  std::string what;
  bool by_template = false;  // raise_exception()
};

Rendered render(const Block&, const Value& variables);  // throws Failure

}  // namespace stretto::jinja
