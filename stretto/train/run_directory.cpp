#include "stretto/train/run_directory.h"

#include <ctime>
#include <system_error>

namespace stretto {
namespace {

namespace fs = std::filesystem;

std::string date_and_time() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[32];
  return std::string(text, std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &local));
}

// Whether the directory was made now; false when there was one.
bool make(const fs::path& path) {
  std::error_code wrong;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), wrong);
  const bool made = !wrong && fs::create_directory(path, wrong);
  if (wrong)
    throw Error("log.dir", "cannot make the run directory '{}': {}", path.string(), wrong.message())
        .hint("choose another with --log.dir=DIR");
  return made;
}

}  // namespace

fs::path make_run_directory(const LogSection& log) {
  if (log.dir.empty()) {
    const std::string first = (fs::path("runs") / fmt::format("{}-{}", log.name, date_and_time())).string();
    fs::path path = first;
    for (int n = 2; !make(path); ++n) path = fmt::format("{}-{}", first, n);
    return path;
  }
  const fs::path path = fs::path(log.dir).lexically_normal();
  if (!make(path) && !fs::is_empty(path))
    throw Error("log.dir", "'{}' exists and is not empty", path.string())
        .hint("{}choose another with --log.dir=DIR, or remove it",
              fs::exists(path / "config.toml") ? "go on with its run by --resume, " : "");
  return path;
}

}  // namespace stretto
