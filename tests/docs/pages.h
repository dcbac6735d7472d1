// The fenced blocks of a page: `blocks_of("```sh\nls\n```\n", "README.md")` has one, of language sh, from line 2.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace stretto::test {

struct Block {
  std::string language, text, page;
  int line = 0;  // of its first line
  std::string where() const { return page + ":" + std::to_string(line); }
};
std::vector<Block> blocks_of(const std::string& markdown, const std::string& page);

std::vector<std::filesystem::path> pages();  // README.md, CONTRIBUTING.md and docs/*.md
std::vector<Block> all_blocks();             // of all of them

// Targets of links to files, [text](target), without those to the web or within the page.
std::vector<std::string> links_of(const std::string& markdown);

}  // namespace stretto::test
