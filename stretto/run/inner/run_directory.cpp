#include "stretto/run/inner/run_directory.h"

#include <ctime>
#include <system_error>

#include "stretto/base/files.h"
#include "stretto/formats/atomic_file.h"
#include "stretto/saved/run_lock.h"

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
  const bool made = make_folders(path, wrong);
  if (wrong)
    throw Error("log.dir", "cannot make the run directory '{}': {}", path.string(), wrong.message())
        .hint("choose another with --log.dir=DIR");
  return made;
}

}  // namespace

void check_unused(const fs::path& path) {
  for (const fs::path& entry : entries_of(path))
    if (entry.filename() != RunLock::file_name && !is_unfinished(entry))
      throw Error("log.dir", "'{}' exists and is not empty", path.string())
          .hint("{}choose another with --log.dir=DIR, or remove it",
                is_there(path / "config.toml") ? "go on with its run by --resume, " : "");
}

void sweep(const fs::path& run) {
  for (const char* folder : {"", "checkpoints", "best"}) remove_unfinished(run / folder);
}

fs::path make_run_directory(const LogSection& log) {
  if (log.dir.empty()) {
    const std::string first = (fs::path("runs") / fmt::format("{}-{}", log.name, date_and_time())).string();
    fs::path path = first;
    for (int n = 2; !make(path); ++n) path = fmt::format("{}-{}", first, n);
    return path;
  }
  const fs::path path = log.dir;
  if (!make(path)) check_unused(path);
  return path;
}

}  // namespace stretto
