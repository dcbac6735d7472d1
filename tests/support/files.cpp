#include "support/files.h"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace stretto::test {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

Folder::Folder() {
  std::string name = (std::filesystem::temp_directory_path() / "stretto-test-XXXXXX").string();
  if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
  path_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string sentences(int n) {
  std::string text;
  for (int i = 0; i < n; ++i) text += "the quick brown fox jumps over the lazy dog. ";
  return text;
}

void Folder::write(const std::string& name, std::string_view text) const {
  std::filesystem::create_directories((path_ / name).parent_path());
  std::ofstream out(path_ / name, std::ios::binary);
  out << text;
  if (!out.flush()) throw std::runtime_error("cannot write " + name);
}

}  // namespace stretto::test
