// A regular expression that cuts text into pieces, as tokenizer.json has one. White space is what Unicode says it is.
//
//   SplitPattern pattern(gpt2_pattern, "tokenizer.json");
//   SplitPattern::Search search(pattern);
//   std::size_t begin, end;
//   while (search.next(text, begin, end)) use(text.substr(begin, end - begin));
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace stretto {

inline constexpr std::string_view gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view llama3_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

class SplitPattern {
 public:
  SplitPattern(std::string_view expression, std::string_view where);  // Error names where and what is wrong
  const std::string& expression() const { return expression_; }

  // One search at a time; searches of one pattern may run on several threads.
  class Search {
   public:
    explicit Search(const SplitPattern&);
    ~Search();
    Search(Search&&) noexcept;
    void start(std::string_view text);                // which is UTF-8
    bool next(std::size_t& begin, std::size_t& end);  // the next match; false: there is none
   private:
    struct State;
    std::unique_ptr<State> state_;
  };

 private:
  struct Code;
  std::string expression_;
  std::shared_ptr<const Code> code_;
};

// The same expression for PCRE2: \s and \S written out, and what would mean something else there is refused.
std::string for_pcre2(std::string_view expression, std::string_view where);

}  // namespace stretto
