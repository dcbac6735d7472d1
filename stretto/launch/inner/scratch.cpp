#include "stretto/launch/inner/scratch.h"

#include <sys/stat.h>

#include <filesystem>

namespace stretto {
namespace {

std::string scratch_path(const std::string& name) { return "/dev/shm/" + name; }

}  // namespace

std::optional<std::string> make_scratch(const std::string& name) {
  if (mkdir(scratch_path(name).c_str(), 0700) != 0) return {};
  return scratch_path(name);
}

void remove_scratch(const std::string& name) {
  std::error_code ignored;
  if (!name.empty()) std::filesystem::remove_all(scratch_path(name), ignored);
}

}  // namespace stretto
