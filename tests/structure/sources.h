// The sources that the tests of this folder read.
//
//   for_sources(STRETTO_SOURCE "/stretto", [](const std::string& name, const std::vector<std::string>& lines) { ... });
#pragma once
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

namespace stretto::test {

inline std::vector<std::string> lines_of(const std::filesystem::path& file) {
  std::vector<std::string> lines;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Of every .h and .cpp: its name below `root`, and its lines.
template <class Visit>
void for_sources(const std::filesystem::path& root, Visit visit) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root))
    if (const std::string extension = entry.path().extension(); extension == ".h" || extension == ".cpp")
      visit(std::filesystem::relative(entry.path(), root).string(), lines_of(entry.path()));
}

// Without comments and what stands in quotes.
inline std::string code_of(const std::string& line) {
  std::string code;
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (!quote && line.compare(i, 2, "//") == 0) break;
    if (quote && line[i] == '\\') {
      ++i;
    } else if (quote ? line[i] == quote : line[i] == '"') {
      quote = quote ? 0 : line[i];
    } else if (!quote) {
      code += line[i];
    }
  }
  return code;
}

}  // namespace stretto::test
