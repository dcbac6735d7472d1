// One word, one thing: a type that several files can see has a name of its own. The compiler would not say so, since no
// file includes both headers, and the linker would take one of them for both.
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "structure/sources.h"

namespace stretto {
namespace {

using test::code_of;
using test::for_sources;
using testing::ElementsAre;
using testing::IsEmpty;

// Types that a header defines in a namespace, as namespace::Type; not those within another type.
std::set<std::string> types_of(const std::vector<std::string>& lines) {
  static const std::regex space(R"(^namespace (\w+(::\w+)*) \{)"),
      type(R"(^(struct|class|enum class|enum|using) ([A-Z]\w*)(?![\w;:]| *;))");
  std::set<std::string> all;
  std::string within;
  std::smatch m;
  for (const std::string& line : lines) {
    const std::string code = code_of(line);
    if (std::regex_search(code, m, space)) within = m[1];
    if (std::regex_search(code, m, type)) all.insert(within + "::" + m[2].str());
  }
  return all;
}

TEST(Names, ATypeIsDefinedByOneHeader) {
  std::map<std::string, std::vector<std::string>> headers;
  for (const char* root : {"stretto", "apps", "python"})
    for_sources(std::string(STRETTO_SOURCE "/") + root, [&](const std::string& name, const auto& lines) {
      if (!name.ends_with(".h")) return;
      for (const std::string& type : types_of(lines)) headers[type].push_back(std::string(root) + "/" + name);
    });
  EXPECT_GT(headers.size(), 300u) << "they are found";
  for (const auto& [type, all] : headers) EXPECT_EQ(all.size(), 1u) << type << ": " << testing::PrintToString(all);
}

TEST(Names, TypesAreFound) {
  EXPECT_THAT(types_of({"namespace stretto {", "class Later;", "struct Order {", "  struct Inner {", "};",
                        "enum class Kind : char { a };", "using Rows = std::vector<int>;", "struct Tag;"}),
              ElementsAre("stretto::Kind", "stretto::Order", "stretto::Rows"));
  EXPECT_THAT(types_of({"namespace stretto::jinja {", "struct Order {};  // struct Other {"}),
              ElementsAre("stretto::jinja::Order"));
  EXPECT_THAT(types_of({"using namespace stretto;", "struct Task final : Base {"}), ElementsAre("::Task"));
}

}  // namespace
}  // namespace stretto
