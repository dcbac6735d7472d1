#include "stretto/formats/atomic_directory.h"

#include <unistd.h>

#include <cstdio>
#include <new>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/formats/atomic_file.h"

namespace stretto {

namespace fs = std::filesystem;

AtomicDirectory::AtomicDirectory(const fs::path& given)
    : path_(given.has_filename() ? given : given.parent_path()),
      temporary_(path_.parent_path() / fmt::format(".{}-{}.tmp", path_.filename().string(), ::getpid())) {
  std::error_code wrong;
  const auto check = [&](const fs::path& made) {
    if (wrong) throw_run_error(file_error(made, "made", wrong).hint("choose another place"), wrong);
  };
  make_folders(path_.parent_path(), wrong);
  check(path_.parent_path());
  fs::remove_all(temporary_, wrong);  // left by a process of the same number
  if (!wrong) fs::create_directory(temporary_, wrong);
  check(path_);
}

AtomicDirectory::~AtomicDirectory() {
  std::error_code ignored;
  try {
    fs::remove_all(temporary_, ignored);
  } catch (const std::bad_alloc&) {  // to walk a folder takes memory: it stays
  }
}

void AtomicDirectory::commit() {
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const std::error_code why = last_error();
    throw_run_error(file_error(path_, "put in its place", why), why);
  }
  sync_directory(path_.parent_path());
}

}  // namespace stretto
