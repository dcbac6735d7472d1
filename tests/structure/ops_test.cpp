// What stands about ops outside of their own files: the list of headers for users, nothing that asks for one op, and
// nothing but devices that looks at what they computed.
#include <gmock/gmock.h>

#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

#include "support/files.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;
using testing::IsEmpty;

std::string top_comment(const std::string& text) {
  std::istringstream lines(text);
  std::string comment;
  for (std::string line; std::getline(lines, line) && line.starts_with("//");) comment += line.substr(2);
  return comment;
}

// Headers of a folder like stretto/ops that are neither listed in all.h nor say why, or both; and what is listed twice
// or is no file.
std::vector<std::string> unlisted(const fs::path& folder) {
  static const std::regex listed(R"re(#include "stretto/ops/(\w+\.h)")re");
  const std::string all = test::text_of(folder / "all.h");
  std::multiset<std::string> names;
  for (std::sregex_iterator i(all.begin(), all.end(), listed); i != std::sregex_iterator(); ++i) names.insert((*i)[1]);
  std::vector<std::string> wrong;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (entry.path().extension() != ".h" || name == "all.h") continue;
    const std::string comment = top_comment(test::text_of(entry.path()));
    const bool inner =
        comment.find("Made by") != std::string::npos || comment.find("For ops only") != std::string::npos;
    if (names.count(name) != (inner ? 0 : 1)) wrong.push_back(name);
    names.erase(name);
  }
  wrong.insert(wrong.end(), names.begin(), names.end());
  std::sort(wrong.begin(), wrong.end());
  return wrong;
}

TEST(OpHeaders, AllThatUsersCallAreInOneHeader) { EXPECT_THAT(unlisted(STRETTO_SOURCE "/stretto/ops"), IsEmpty()); }

TEST(OpHeaders, OnesThatAreMissingOrTooMuchAreFound) {
  const test::Folder folder;
  folder.write("all.h",
               "#include \"stretto/ops/b.h\"\n#include \"stretto/ops/c.h\"\n#include \"stretto/ops/gone.h\"\n");
  folder.write("a.h", "// a(x): forgotten.\n");
  folder.write("b.h", "// b(x): listed.\n");
  folder.write("c.h", "// c(x): listed. Made by shard/ only.\n");
  folder.write("d.h", "// d(x): its gradient. Made by\n// differentiation.\n");
  EXPECT_THAT(unlisted(folder.str()), testing::ElementsAre("a.h", "c.h", "gone.h"));
}

// Comparisons with one op's entry: policy belongs into the table.
std::vector<std::string> comparisons(const fs::path& root) {
  static const std::regex pattern(R"([=!]= *&\w+_op\b|&\w+_op *[=!]=|op->name *[=!]= *")");
  std::vector<std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string file = fs::relative(entry.path(), root);
    if (!entry.is_regular_file() || file.starts_with("ops/")) continue;
    std::istringstream lines(test::text_of(entry.path()));
    int number = 0;
    for (std::string line; std::getline(lines, line);)
      if (++number; std::regex_search(line, pattern)) all.push_back(file + ":" + std::to_string(number));
  }
  std::sort(all.begin(), all.end());
  return all;
}

TEST(OpKinds, AreAskedForByTheTablesFieldsOnly) { EXPECT_THAT(comparisons(STRETTO_SOURCE "/stretto"), IsEmpty()); }

TEST(OpKinds, ComparisonsWithOneOpAreFound) {
  const test::Folder folder;
  folder.write("a.cpp", "if (n.op == &gelu_op) return;\nNode n{.op = &gelu_op};\nif (&gelu_op != n.op) return;\n");
  folder.write("b.cpp", "return n.op->pointwise;\nreturn n.op->name == \"gelu\";\n");
  folder.write("ops/gelu.cpp", "return n.op == &gelu_op;\n");
  EXPECT_THAT(comparisons(folder.str()), testing::ElementsAre("a.cpp:1", "a.cpp:3", "b.cpp:2"));
}

// Memory is the device's: what the runtime wants to know of a value it asks the device.
TEST(TensorMemory, IsNotLookedIntoByTheRuntime) {
  static const std::regex look(R"(reinterpret_cast<(const )?(double|float|std::int32_t)\b)");
  for (const auto& entry : fs::directory_iterator(STRETTO_SOURCE "/stretto/runtime"))
    EXPECT_FALSE(std::regex_search(test::text_of(entry.path()), look)) << entry.path();
}

}  // namespace
}  // namespace stretto
