#include "support/command.h"

#include <sstream>

#include <sys/wait.h>

#include <cstdlib>

#include "support/files.h"

namespace stretto::test {

Result shell(const std::string& command, const std::string& directory) {
  const Folder folder;
  folder.write("command", "cd '" + directory + "'\n" + command + "\n");
  const std::string all =
      "bash -e '" + folder.str() + "/command' > '" + folder.str() + "/out' 2> '" + folder.str() + "/error' < /dev/null";
  const int status = std::system(all.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of(folder / "out"), text_of(folder / "error")};
}

std::string binaries() {
  const char* other = std::getenv("STRETTO_TEST_BINARIES");
  return other ? other : STRETTO_BINARY;
}

Result stretto(const std::string& arguments, const std::string& directory) {
  return shell("'" + binaries() + "/stretto' " + arguments, directory);
}

std::vector<std::vector<std::string>> cells(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream in(line);
    rows.emplace_back();
    for (std::string cell; std::getline(in, cell, '\t');) rows.back().push_back(cell);
  }
  return rows;
}

}  // namespace stretto::test
