// What CONTRIBUTING.md says about style and no formatter sees: how constants are written, and that ids and sizes have
// types which need no casts and no number that stands for none.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "structure/sources.h"

namespace stretto {
namespace {

using test::code_of;
using test::for_sources;
using testing::ElementsAre;
using testing::IsEmpty;

// Constants that are declared as kLimit or LIMIT.
std::vector<std::string> odd_constants(const std::string& code) {
  static const std::regex declared(R"(^ *(inline |static )*(constexpr|const) )"),
      odd(R"(\b(k[A-Z]\w*|[A-Z][A-Z0-9]*_[A-Z0-9_]+|[A-Z]{3,}) *[={\[])");
  std::vector<std::string> names;
  if (!std::regex_search(code, declared)) return names;
  for (std::sregex_iterator i(code.begin(), code.end(), odd), last; i != last; ++i) names.push_back((*i)[1]);
  return names;
}

TEST(Style, ConstantsAreWrittenAsVariables) {
  std::vector<std::string> all;
  for (const char* root : {"stretto", "apps", "tests", "bench", "examples", "python"})
    for_sources(std::string(STRETTO_SOURCE "/") + root, [&](const std::string& name, const auto& lines) {
      if (name == "structure/style_test.cpp" || name == "view/inner/page.cpp") return;  // a page's script is JavaScript
      for (const std::string& line : lines)
        for (const std::string& found : odd_constants(code_of(line))) all.push_back(name + ": " + found);
    });
  EXPECT_THAT(all, IsEmpty());
}

TEST(Style, OtherConstantsAreFound) {
  EXPECT_THAT(odd_constants("constexpr int kMost = 3, kLeast = 1;"), ElementsAre("kMost", "kLeast"));
  EXPECT_THAT(odd_constants("static constexpr std::size_t LARGEST_FILE = 3;"), ElementsAre("LARGEST_FILE"));
  EXPECT_THAT(odd_constants("const double LIMITS[] = {1, 2};"), ElementsAre("LIMITS"));
  EXPECT_THAT(odd_constants("constexpr int most = std::max(SIGINT, SIGTERM);"), IsEmpty());
  EXPECT_THAT(odd_constants(code_of(R"(x(", kMost"); // kMost)")), IsEmpty());
}

// How wide a line is that ends in a comment, in characters; 0: it has none. What is in quotes may be of any width.
std::size_t width_of_comment(const std::string& line) {
  if (line.find("//") == std::string::npos || code_of(line).size() == line.size()) return 0;
  if (line.find('"') < line.find("//")) return 0;
  return std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; });
}

TEST(Style, CommentsAreNoWiderThanCode) {
  std::vector<std::string> all;
  for (const char* root : {"stretto", "apps", "tests", "bench", "examples", "python"})
    for_sources(std::string(STRETTO_SOURCE "/") + root, [&](const std::string& name, const auto& lines) {
      for (std::size_t i = 0; i < lines.size(); ++i)
        if (width_of_comment(lines[i]) > 120) all.push_back(name + ":" + std::to_string(i + 1));
    });
  EXPECT_THAT(all, IsEmpty());
}

TEST(Style, WideCommentsAreFound) {
  EXPECT_EQ(width_of_comment("  // " + std::string(116, 'x')), 121u);
  EXPECT_EQ(width_of_comment("f();  // ──▶"), 12u);
  EXPECT_EQ(width_of_comment("x(\"http://" + std::string(200, 'x') + "\");"), 0u);
}

// Functional ones and static_cast, to types of numbers.
int casts_in(const std::string& code) {
  static const std::string number =
      "((std::)?(u?int(8|16|32|64)_t|size_t|ptrdiff_t)|[iu](32|64)|int|unsigned|long|double|float)";
  static const std::regex cast("(^|[^\\w:.>])(" + number + "\\([^*)]|static_cast<" + number + ">)"),
      type("function<" + number + "\\([^*)]");
  const auto count = [&](const std::regex& r) {
    return std::distance(std::sregex_iterator(code.begin(), code.end(), r), std::sregex_iterator());
  };
  return code.find('(') == std::string::npos ? 0 : count(cast) - count(type);
}

// Kernels convert between types of numbers, formats between bytes and numbers.
TEST(Style, FewCasts) {
  struct Count {
    int casts = 0;
    int lines = 0;
  };
  std::map<std::string, Count> folders;
  for_sources(STRETTO_SOURCE "/stretto", [&](const std::string& name, const auto& lines) {
    Count& c = folders[name.substr(0, name.find('/'))];
    c.lines += lines.size();
    for (const std::string& line : lines) c.casts += casts_in(code_of(line));
  });
  for (const auto& [folder, c] : folders) {
    if (folder == "kernels" || folder == "formats") continue;
    EXPECT_LE(1000 * c.casts, 10 * c.lines) << folder << ": " << c.casts << " casts in " << c.lines << " lines";
  }
}

TEST(Style, CastsAreFound) {
  EXPECT_EQ(casts_in("x = std::size_t(i) + i64(2) * double(n);"), 3);
  EXPECT_EQ(casts_in("return static_cast<int>(x);"), 1);
  EXPECT_EQ(casts_in("std::function<int(double)> f; void g(int(*h)(int)); operator float() const;"), 0);
  EXPECT_EQ(casts_in("print(n), a.int_of(x), to_int(x), std::vector<int>(3);"), 0);
}

// What may be absent is a std::optional: no number stands for none.
bool has_sentinel(const std::string& code) {
  static const std::regex sentinel(
      R"(~0[uUlL]*\b|~(u64|i64|std::u?int\d+_t|std::size_t)[({]0|const(expr)? [\w:]+ \w+ = -1;)");
  return std::regex_search(code, sentinel);
}

TEST(Style, NoNumberStandsForNone) {
  std::vector<std::string> all;
  for_sources(STRETTO_SOURCE "/stretto", [&](const std::string& name, const auto& lines) {
    if (name == "base/fd.h" || name.starts_with("kernels/cpu/")) return;  // the system's files; masks of lanes
    for (std::size_t i = 0; i < lines.size(); ++i)
      if (has_sentinel(code_of(lines[i]))) all.push_back(name + ":" + std::to_string(i + 1));
  });
  EXPECT_THAT(all, IsEmpty());
}

TEST(Style, NumbersThatStandForNoneAreFound) {
  EXPECT_TRUE(has_sentinel("constexpr std::uint32_t nobody = ~0u;"));
  EXPECT_TRUE(has_sentinel("if (slot == ~std::size_t(0)) return;"));
  EXPECT_TRUE(has_sentinel("static constexpr int absent = -1;"));
  EXPECT_FALSE(has_sentinel("return word & ~shared_sleeping;"));
  EXPECT_FALSE(has_sentinel("i64 step = -1 + n;"));
}

// Whoever looks for one kind of instruction alone would overlook a new one: instruction.h answers, or a match that
// names all kinds.
bool asks_for_one_kind(const std::string& code) {
  static const std::regex asks(R"((get_if|holds_alternative)<(const )?(stretto::)?(Run|Send|Receive|Start|Await)>)");
  return std::regex_search(code, asks);
}

TEST(Style, EveryKindOfInstructionIsNamed) {
  std::vector<std::string> all;
  for (const char* root : {"stretto", "apps", "python"})
    for_sources(std::string(STRETTO_SOURCE "/") + root, [&](const std::string& name, const auto& lines) {
      for (std::size_t i = 0; i < lines.size(); ++i)
        if (asks_for_one_kind(code_of(lines[i]))) all.push_back(name + ":" + std::to_string(i + 1));
    });
  EXPECT_THAT(all, IsEmpty());
}

TEST(Style, QuestionsForOneKindOfInstructionAreFound) {
  EXPECT_TRUE(asks_for_one_kind("if (const Send* s = std::get_if<Send>(&i)) return;"));
  EXPECT_TRUE(asks_for_one_kind("return std::holds_alternative<stretto::Run>(i);"));
  EXPECT_FALSE(asks_for_one_kind("if (const ValueId* v = std::get_if<ValueId>(&b)) return;"));
}

}  // namespace
}  // namespace stretto
