// Tokens that are found in the text before it is cut into pieces, such as <|endoftext|>.
//
//   AddedTokens added({{.text = "<|endoftext|>", .id = 50256, .special = true}});
//   for (AddedTokens::Stretch p : added.split(text)) use(p.text, p.id);   // no id: text between them
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stretto {

struct AddedToken {
  std::string text;
  std::int32_t id = 0;
  bool special = false;      // is left out of decoded text
  bool single_word = false;  // only where no letter or digit stands beside it
  bool lstrip = false;       // takes the blanks before it
  bool rstrip = false;       // and those after it
  bool normalized = false;   // is looked for after those that are not, in what normalizers have made of the text
  bool in_text = true;       // false: has an id, and no text becomes it
  bool operator==(const AddedToken&) const = default;
};

class AddedTokens {
 public:
  struct Stretch {
    std::string_view text;
    std::optional<std::int32_t> id = {};  // of a token
  };
  AddedTokens() = default;
  explicit AddedTokens(std::vector<AddedToken> tokens);  // one that is empty is never found
  bool empty() const { return tokens_.empty(); }
  // Leftmost first, and of those the longest; parts in order, none of the texts between tokens empty.
  void split(std::string_view text, std::vector<Stretch>& to) const;

 private:
  const AddedToken* at(std::string_view text, std::size_t position) const;
  std::size_t candidate(std::string_view text, std::size_t from) const;

  std::vector<AddedToken> tokens_;  // sorted by text
  std::array<bool, 256> first_{};   // some token begins with this byte
  std::optional<char> only_;        // the only such byte
};

}  // namespace stretto
