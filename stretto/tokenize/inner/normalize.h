// Changes a text before it is cut into pieces, as the normalizers of tokenizer.json say.
//
//   TextNormalizer nfkc({{.kind = Normalizer::Kind::nfkc}}, "tokenizer.json");
//   nfkc.apply("\uFB01ne", true);      // "fine"
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/tokenize/parts.h"
#include "stretto/tokenize/split_pattern.h"

namespace stretto {

class TextNormalizer {
 public:
  TextNormalizer() = default;
  TextNormalizer(const std::vector<Normalizer>&, std::string_view where);
  bool empty() const { return rules_.empty(); }
  // `text` is UTF-8. Not the first: it goes on from another one, and nothing is put before it.
  std::string apply(std::string_view text, bool first) const;

 private:
  struct Rule {
    Normalizer what;
    std::optional<SplitPattern> expression;
  };
  std::vector<Rule> rules_;
};

}  // namespace stretto
