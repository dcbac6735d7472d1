// Holds the calls of std::filesystem in stretto/ and apps/ against base/files.h.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "support/files.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

// Those of std::filesystem that throw what nobody expects; base/files.h says the same with an Error.
std::vector<std::string> throwing_calls(const fs::path& root) {
  static const std::regex call(
      R"(\b(fs|filesystem)::(exists|is_directory|is_empty|is_regular_file|is_symlink|file_size|directory_iterator|)"
      R"(recursive_directory_iterator|create_director\w*|remove|remove_all|rename|copy|copy_file|status|)"
      R"(symlink_status|absolute|canonical|current_path|equivalent|last_write_time|permissions|space|resize_file)\b)"
      R"((\s+\w+)?\()"),
      with_code(R"(\b(wrong|ignored|absent|none)\))");
  std::vector<std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string extension = entry.path().extension(), file = fs::relative(entry.path(), root);
    if ((extension != ".h" && extension != ".cpp") || file == "base/files.cpp") continue;
    std::ifstream in(entry.path());
    int number = 0;
    for (std::string line; std::getline(in, line);) {
      ++number;
      if (std::regex_search(line, call) && !std::regex_search(line, with_code))
        all.push_back(file + ":" + std::to_string(number) + ": " + line);
    }
  }
  return all;
}

TEST(Files, NothingAsksTheFileSystemInAWayThatThrows) {
  const test::Folder folder;
  folder.write("a.cpp", "fs::exists(p)\nfs::exists(p, wrong)\nstd::filesystem::path p(q)\nfs::remove_all(p);\n");
  EXPECT_THAT(throwing_calls(folder.str()), ElementsAre("a.cpp:1: fs::exists(p)", "a.cpp:4: fs::remove_all(p);"));
  EXPECT_THAT(throwing_calls(STRETTO_SOURCE "/stretto"), IsEmpty());
  for (const std::string& call : throwing_calls(STRETTO_SOURCE "/apps"))
    EXPECT_THAT(call, testing::StartsWith("launch.cpp:"));  // no file of a user's
}

}  // namespace
}  // namespace stretto
