// A folder for a test's files that goes away with its owner: `Folder f; f.write("a.txt", "text"); f / "a.txt"`.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace stretto::test {

std::string text_of(const std::filesystem::path& path);
std::string sentences(int n);  // something to train on

class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  std::string str() const { return path_.string(); }
  void write(const std::string& name, std::string_view text) const;  // makes the folders that it lies in

 private:
  std::filesystem::path path_;
};

}  // namespace stretto::test
