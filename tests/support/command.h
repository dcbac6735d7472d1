// Runs the built executable as a user would: `Result r = stretto("train run.toml", folder.str());`
#pragma once
#include <string>
#include <vector>

namespace stretto::test {

struct Result {
  int code = -1;
  std::string out, error;
};
// Where the built programs are: STRETTO_TEST_BINARIES, or the build directory.
std::string binaries();
// In the given directory, without a terminal.
Result shell(const std::string& command, const std::string& directory);
Result stretto(const std::string& arguments, const std::string& directory);
// What `--plain` prints: a line is a row, cells are between tabs.
std::vector<std::vector<std::string>> cells(const std::string& text);

}  // namespace stretto::test
