#include "stretto/generate/utf8_stream.h"

#include <algorithm>

#include "stretto/formats/utf8.h"

namespace stretto {
namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";

std::size_t length_of(unsigned char lead) { return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4; }

// Whether more bytes could make a character of what is there.
bool unfinished(std::string_view text) {
  const unsigned char lead = static_cast<unsigned char>(text[0]);
  if (lead < 0xc2 || lead > 0xf4 || text.size() >= length_of(lead)) return false;
  // The second byte decides about overlong forms, surrogates and what lies beyond U+10FFFF.
  for (const unsigned char fill : {0x80, 0x90, 0xa0, 0xbf}) {
    std::string whole(text);
    whole.resize(length_of(lead), char(fill));
    if (!first_bad_utf8(whole)) return true;
  }
  return false;
}

}  // namespace

std::string Utf8Stream::push(std::string_view bytes) {
  held_ += bytes;
  std::string out;
  while (!held_.empty()) {
    const std::size_t good = first_bad_utf8(held_).value_or(held_.size());
    out.append(held_, 0, good);
    held_.erase(0, good);
    if (held_.empty() || unfinished(held_)) break;
    out += replacement;
    held_.erase(0, 1);
  }
  return out;
}

std::string Utf8Stream::finish() {
  const bool cut = !held_.empty();
  held_.clear();
  return cut ? std::string(replacement) : "";
}

}  // namespace stretto
