// tests/ mirrors stretto/: every room has tests in a folder of its name, and docs/architecture.md names all others.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>

#include "support/files.h"

namespace stretto {
namespace {

std::set<std::string> folders_of(const std::string& root) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(root))
    if (entry.is_directory()) names.insert(entry.path().filename());
  return names;
}

bool has_tests(const std::string& folder) {
  const auto is_test = [](const auto& entry) { return entry.path().string().ends_with("_test.cpp"); };
  const std::filesystem::recursive_directory_iterator files(folder);
  return std::any_of(begin(files), end(files), is_test);
}

TEST(Mirror, EveryRoomHasTestsOfItsName) {
  for (const std::string& room : folders_of(STRETTO_SOURCE "/stretto")) {
    const std::string tests = STRETTO_SOURCE "/tests/" + room;
    EXPECT_TRUE(std::filesystem::is_directory(tests) && has_tests(tests)) << "no tests of stretto/" << room;
  }
}

TEST(Mirror, OtherFoldersAreNamedInTheArchitecture) {
  const std::string page = test::text_of(STRETTO_SOURCE "/docs/architecture.md");
  const std::regex name("`tests/(\\w+)/`");
  std::set<std::string> known = folders_of(STRETTO_SOURCE "/stretto");
  for (std::sregex_iterator it(page.begin(), page.end(), name), last; it != last; ++it) known.insert((*it)[1]);
  for (const std::string& folder : folders_of(STRETTO_SOURCE "/tests"))
    EXPECT_THAT(known, testing::Contains(folder)) << "docs/architecture.md does not say what tests/" << folder << " is";
}

}  // namespace
}  // namespace stretto
