// A template as stretches of text, tags and the words in them.
//
//   for (const Stretch& s : stretches_of("{%- if x %}a{% endif %}", "file")) ...
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "stretto/base/id.h"

namespace stretto::jinja {

struct Word {
  enum class Kind : std::uint8_t { name, string, integer, real, sign, end } kind = Kind::end;
  std::string text = {};  // of a string its content
  int line = 0;
};

struct Stretch {
  enum class Kind : std::uint8_t { text, output, block } kind = Kind::text;
  std::string text = {};
  std::vector<Word> words = {};  // of a tag; the last one is `end`
  int line = 0;
};

// Blanks around tags as transformers has them: trim_blocks, lstrip_blocks, and what - and + say. Comments are gone.
std::vector<Stretch> stretches_of(std::string_view source, std::string_view where);

}  // namespace stretto::jinja
