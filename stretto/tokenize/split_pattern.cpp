#include "stretto/tokenize/split_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <optional>

#include "stretto/base/error.h"
#include "stretto/formats/utf8.h"
#include "stretto/tokenize/inner/bytes.h"
#include "stretto/tokenize/inner/newer_characters.h"

namespace stretto {
namespace {

constexpr std::size_t longest_expression = 1 << 16;
// PCRE2 counts U+180E as white space, Unicode has not since 6.3.
constexpr std::string_view space_class = R"(\t-\r \x{85}\p{Z})";

std::string reason(int code) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

// "{L}..." of an expression: the characters of that category which PCRE2 does not know.
const NewerCharacters* newer_of(std::string_view rest) {
  for (const NewerCharacters& n : newer_ranges)
    if (rest.starts_with(fmt::format("{{{}}}", n.category))) return &n;
  return nullptr;
}

}  // namespace

std::string for_pcre2(std::string_view expression, std::string_view where) {
  std::string out;
  bool inside = false;  // of a class
  for (std::size_t at = 0; at < expression.size(); ++at) {
    const char c = expression[at];
    if (c == '\\' && at + 1 < expression.size()) {
      const char next = expression[++at];
      if (next == 's') {
        out += inside ? std::string(space_class) : fmt::format("[{}]", space_class);
      } else if (next == 'S' && !inside) {
        out += fmt::format("[^{}]", space_class);
      } else if (const NewerCharacters* newer = next == 'p' ? newer_of(expression.substr(at + 1)) : nullptr) {
        const std::string both = fmt::format(R"(\p{{{}}}{})", newer->category, newer->ranges);
        out += inside ? both : "[" + both + "]";
        at += newer->category.size() + 2;
      } else if (next == 'h' || next == 'H' || next == 'K' || next == 'G') {
        throw Error(where, "the split expression has '\\{}', which means different things in different engines", next)
            .hint("write out the characters");
      } else {
        out += c;
        out += next;
      }
      continue;
    }
    if (inside && (c == '[' || expression.substr(at, 2) == "&&"))
      throw Error(where, "the split expression has a class within a class, which is not supported")
          .hint("write out the characters");
    out += c;
    if (!inside && c == '[') {
      inside = true;
      if (at + 1 < expression.size() && expression[at + 1] == '^') out += expression[++at];
      if (at + 1 < expression.size() && expression[at + 1] == ']') out += expression[++at];
    } else if (inside && c == ']') {
      inside = false;
    }
  }
  return out;
}

struct SplitPattern::Code {
  pcre2_code* code = nullptr;
  bool jit = false;
  ~Code() { pcre2_code_free(code); }
};

SplitPattern::SplitPattern(std::string_view expression, std::string_view where) : expression_(expression) {
  if (expression.empty()) throw Error(where, "the split expression is empty");
  if (expression.size() > longest_expression)
    throw Error(where, "the split expression is {} bytes long; {} is the most", expression.size(), longest_expression);
  const std::string pattern = for_pcre2(expression, where);
  int error = 0;
  std::size_t at = 0;
  auto code = std::make_shared<Code>();
  code->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                             PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error, &at, nullptr);
  if (!code->code)
    throw Error(where, "the split expression '{}' is wrong near '{}': {}", shown(expression, 80),
                shown(std::string_view(pattern).substr(std::min(at, pattern.size())), 20), reason(error));
  code->jit = pcre2_jit_compile(code->code, PCRE2_JIT_COMPLETE) == 0;
  code_ = std::move(code);
}

struct SplitPattern::Search::State {
  std::shared_ptr<const Code> code;
  pcre2_match_data* match = nullptr;
  pcre2_match_context* context = nullptr;
  pcre2_jit_stack* stack = nullptr;
  std::string_view text;
  std::size_t at = 0;
  std::optional<std::size_t> last_end;

  ~State() {
    pcre2_match_data_free(match);
    pcre2_match_context_free(context);
    if (stack) pcre2_jit_stack_free(stack);
  }

  bool find() {
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    int found = code->jit ? pcre2_jit_match(code->code, subject, text.size(), at, PCRE2_NO_UTF_CHECK, match, context)
                          : PCRE2_ERROR_JIT_STACKLIMIT;
    if (found == PCRE2_ERROR_JIT_STACKLIMIT)
      found = pcre2_match(code->code, subject, text.size(), at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, match, context);
    if (found == PCRE2_ERROR_NOMATCH) return false;
    if (found < 0)
      throw Error("tokenizer", "the split expression gives up at byte {} of a text of {}: {}", at, text.size(),
                  reason(found))
          .hint("the expression tries too many ways to match; a simpler one may do")
          .as(Error::Kind::run);
    return true;
  }
};

SplitPattern::Search::Search(const SplitPattern& pattern) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.code = pattern.code_;
  s.match = pcre2_match_data_create(1, nullptr);
  s.context = pcre2_match_context_create(nullptr);
  s.stack = pcre2_jit_stack_create(32 << 10, 1 << 20, nullptr);
  if (!s.match || !s.context) throw std::bad_alloc();
  pcre2_set_match_limit(s.context, 10'000'000);
  pcre2_set_heap_limit(s.context, 64 << 10);  // KiB
  if (s.stack) pcre2_jit_stack_assign(s.context, nullptr, s.stack);
}

SplitPattern::Search::~Search() = default;
SplitPattern::Search::Search(Search&&) noexcept = default;

void SplitPattern::Search::start(std::string_view text) {
  state_->text = text;
  state_->at = 0;
  state_->last_end = {};
}

bool SplitPattern::Search::next(std::size_t& begin, std::size_t& end) {
  State& s = *state_;
  while (s.at <= s.text.size() && s.find()) {
    const std::size_t* where = pcre2_get_ovector_pointer(s.match);
    begin = where[0];
    end = where[1];
    if (end > begin) {
      s.last_end = s.at = end;
      return true;
    }
    // An empty match is a place to cut, unless the last piece ended there; the search goes on after the character.
    s.at = end + 1;
    while (s.at < s.text.size() && inside_character(s.text[s.at])) ++s.at;
    if (end != s.last_end && end <= s.text.size()) {
      s.last_end = end;
      return true;
    }
  }
  return false;
}

}  // namespace stretto
