// Files and functions stay of a size that one can look at.
#include <gmock/gmock.h>

#include <algorithm>

#include "structure/sources.h"

namespace stretto {
namespace {

using test::for_sources;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::size_t most_of_file = 400, most_of_function = 60;

std::size_t indent_of(const std::string& line) { return std::min(line.find_first_not_of(' '), line.size()); }

bool is_lambda(const std::string& line) { return line.find("](") != std::string::npos; }

// As .clang-format lays them out: a body begins after its signature and ends with a brace in the signature's column.
// Functions stand at the margin, or in a class.
std::vector<std::string> long_functions(const std::string& name, const std::vector<std::string>& lines) {
  static const std::regex opens(R"((\)|\) const|\) noexcept|\) override|\) &&|-> [\w:<>& ]+) \{$)"),
      other(R"( *(if|for|while|else|switch|namespace|struct|class|enum|catch|do|return|function|[^ \w~]).*)");
  std::vector<std::string> all;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].ends_with(" {") || !std::regex_search(lines[i], opens) || is_lambda(lines[i])) continue;
    std::size_t first = i;
    while (first > 0 && indent_of(lines[first]) > 2) --first;  // a signature of several lines
    const std::string& signature = lines[first];
    if (signature.empty() || is_lambda(signature) || std::regex_match(signature, other)) continue;
    const std::string end = std::string(indent_of(signature), ' ') + "}";
    const auto last = std::find(lines.begin() + i, lines.end(), end);
    const std::size_t length = last - lines.begin() - i - 1;
    if (last != lines.end() && length > most_of_function)
      all.push_back(name + ":" + std::to_string(first + 1) + ": " + std::to_string(length) + " lines");
  }
  return all;
}

TEST(Size, FunctionsFitAScreen) {
  std::vector<std::string> all;
  for (const char* root : {STRETTO_SOURCE "/stretto", STRETTO_SOURCE "/apps"})
    for_sources(root, [&](const std::string& name, const std::vector<std::string>& lines) {
      if (name == "models/presets.cpp") return;  // a table
      const std::vector<std::string> found = long_functions(name, lines);
      all.insert(all.end(), found.begin(), found.end());
    });
  EXPECT_THAT(all, IsEmpty());
}

TEST(Size, LongFunctionsAreFound) {
  const std::vector<std::string> body(most_of_function + 1, "    x();"), enough(most_of_function, "  x();");
  std::vector<std::string> lines{"struct A {", "  A(int x,", "    int y)", "      : y(y) {"};
  lines.insert(lines.end(), body.begin(), body.end());
  lines.insert(lines.end(), {"  }", "};", "void f() {"});
  lines.insert(lines.end(), enough.begin(), enough.end());
  lines.insert(lines.end(), {"}", "int g(int x) {", "  if (x) {"});
  lines.insert(lines.end(), body.begin(), body.end());
  lines.insert(lines.end(), {"  }", "}"});
  const std::string at = std::to_string(4 + body.size() + 3 + enough.size() + 2);
  EXPECT_THAT(long_functions("a.cpp", lines), ElementsAre("a.cpp:2: 61 lines", "a.cpp:" + at + ": 63 lines"));
}

TEST(Size, FilesHaveOneSubject) {
  // Tables, and a page's text; the others are one class each and little above.
  const std::vector<std::string> longer{"config/inner/keys.h", "view/inner/page.cpp", "shard/shard.cpp",
                                        "comm/link_bench.cpp", "schedule/validate.cpp"};
  std::vector<std::string> all;
  for (const char* root : {STRETTO_SOURCE "/stretto", STRETTO_SOURCE "/apps"})
    for_sources(root, [&](const std::string& name, const std::vector<std::string>& lines) {
      const std::size_t most = std::find(longer.begin(), longer.end(), name) == longer.end() ? most_of_file : 500;
      if (lines.size() > most) all.push_back(name + ": " + std::to_string(lines.size()) + " lines");
    });
  EXPECT_THAT(all, IsEmpty());
}

}  // namespace
}  // namespace stretto
