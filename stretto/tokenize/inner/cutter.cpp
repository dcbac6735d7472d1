#include "stretto/tokenize/inner/cutter.h"

namespace stretto {

std::string Cutter::with_spaces(const CutStep& s, std::string_view piece, bool first) {
  std::string out;
  out.reserve(piece.size() + piece.size() / 2);
  for (const char c : piece) {
    if (c == ' ')
      out += s.space;
    else
      out += c;
  }
  const bool wanted = s.prepend == CutStep::Prepend::always || (s.prepend == CutStep::Prepend::first && first);
  return wanted && !out.starts_with(s.space) ? s.space + out : out;
}

}  // namespace stretto
