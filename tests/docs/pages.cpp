#include "pages.h"

#include <algorithm>
#include <filesystem>
#include <regex>
#include <sstream>

#include "support/files.h"

namespace stretto::test {

namespace fs = std::filesystem;

std::vector<Block> blocks_of(const std::string& markdown, const std::string& page) {
  std::vector<Block> all;
  std::istringstream lines(markdown);
  bool inside = false;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.starts_with("```")) {
      inside = !inside;
      if (inside) all.push_back({line.substr(3), "", page, number + 1});
    } else if (inside) {
      all.back().text += line + "\n";
    }
  }
  return all;
}

std::vector<fs::path> pages() {
  std::vector<fs::path> all{STRETTO_SOURCE "/README.md", STRETTO_SOURCE "/CONTRIBUTING.md"};
  for (const auto& entry : fs::recursive_directory_iterator(STRETTO_SOURCE "/docs"))
    if (entry.path().extension() == ".md") all.push_back(entry.path());
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<Block> all_blocks() {
  std::vector<Block> all;
  for (const fs::path& page : pages())
    for (const Block& b : blocks_of(text_of(page), fs::relative(page, STRETTO_SOURCE).string())) all.push_back(b);
  return all;
}

std::vector<std::string> links_of(const std::string& markdown) {
  static const std::regex link(R"(\]\(([^)#\s]+)[^)]*\))"), code(R"(```[^]*?\n```)");
  const std::string prose = std::regex_replace(markdown, code, "");
  std::vector<std::string> all;
  for (std::sregex_iterator it(prose.begin(), prose.end(), link), end; it != end; ++it)
    if ((*it)[1].str().find("://") == std::string::npos) all.push_back((*it)[1]);
  return all;
}

}  // namespace stretto::test
