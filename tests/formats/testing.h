// A directory that lives as long as the test.
#pragma once
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "stretto/base/error.h"

namespace stretto::test {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "stretto-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path); }
  std::filesystem::path operator/(const std::string& name) const { return path / name; }
  std::filesystem::path path;
};

// The text of the Error that `f` throws; empty when it throws none.
template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace stretto::test
