#include "stretto/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "stretto/base/fd.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

// None when nothing is there, which a file where a folder should be on the way says as well.
fs::file_status status_of(const fs::path& path) {
  std::error_code wrong;
  const fs::file_status status = fs::status(path, wrong);
  if (status.type() == fs::file_type::none) throw file_error(path, "looked at", wrong);
  return status;
}

std::error_code try_sync(const fs::path& folder) {
  const Fd file(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file && ::fsync(file.get()) == 0) return {};
  // Some network file systems cannot fsync a directory; their renames are durable by other means.
  return errno == EINVAL || errno == ENOTSUP ? std::error_code() : last_error();
}

}  // namespace

std::error_code last_error() { return {errno, std::generic_category()}; }

Error file_error(const fs::path& path, std::string_view doing, const std::error_code& why) {
  return Error(path.string(), "cannot be {}: {}", doing, why.message());
}

void throw_run_error(Error e, const std::error_code& why) {
  const bool full = why == std::errc::no_space_on_device || why.value() == EDQUOT;
  if (full) throw FullDisk(std::move(e).as(Error::Kind::run));
  throw std::move(e).as(Error::Kind::run);
}

bool is_there(const fs::path& path) { return fs::exists(status_of(path)); }
bool is_folder(const fs::path& path) { return fs::is_directory(status_of(path)); }

bool is_link(const fs::path& path) {
  std::error_code wrong;
  const fs::file_status status = fs::symlink_status(path, wrong);
  if (status.type() == fs::file_type::none) throw file_error(path, "looked at", wrong);
  return fs::is_symlink(status);
}

bool is_same(const fs::path& one, const fs::path& other) {
  std::error_code absent;
  return fs::equivalent(one, other, absent);
}

bool is_empty_folder(const fs::path& path) { return is_folder(path) && entries_of(path).empty(); }

u64 file_bytes(const fs::path& file) {
  std::error_code wrong;
  const u64 bytes = fs::file_size(file, wrong);
  if (wrong) throw file_error(file, "looked at", wrong);
  return bytes;
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  if (!is_folder(folder)) return entries;
  std::error_code wrong;
  for (fs::directory_iterator at(folder, wrong); !wrong && at != fs::directory_iterator(); at.increment(wrong))
    entries.push_back(at->path());
  if (wrong) throw file_error(folder, "read", wrong);
  std::sort(entries.begin(), entries.end());
  return entries;
}

void sync_directory(const fs::path& folder) {
  if (const std::error_code wrong = try_sync(folder))
    throw_run_error(file_error(folder.empty() ? "." : folder, "made durable", wrong), wrong);
}

bool make_folders(const fs::path& path, std::error_code& wrong) {
  fs::path so_far;
  bool made = false;
  wrong.clear();
  for (const fs::path& part : path) {
    so_far /= part;
    if (part.empty()) continue;  // a slash at the end
    made = ::mkdir(so_far.c_str(), 0777) == 0;
    // What lies in it would be lost with its name. A folder that we may write to and not read cannot be asked for that.
    if (made) wrong = try_sync(so_far.parent_path());
    if (made && wrong && wrong != std::errc::permission_denied) return true;
    if (made) {
      wrong.clear();
      continue;
    }
    wrong = last_error();
    // Above a folder that is there, others may be out of reach or unwritable.
    struct stat info {};
    const bool known = ::stat(so_far.c_str(), &info) == 0;
    if (known && S_ISDIR(info.st_mode)) {
      wrong.clear();
      continue;
    }
    // "It exists" says less than why it is no folder.
    if (known) wrong = std::make_error_code(std::errc::not_a_directory);
    if (!known && errno != ENOENT) wrong = last_error();
    return false;
  }
  return made;
}

bool make_folders(const fs::path& path) {
  std::error_code wrong;
  const bool made = make_folders(path, wrong);
  if (wrong) throw file_error(path, "made", wrong);
  return made;
}

fs::path absolute_path(const fs::path& path) {
  std::error_code wrong;
  fs::path whole = fs::absolute(path, wrong);
  if (wrong) throw file_error(path, "found", wrong);
  return whole;
}

std::string current_folder() {
  std::error_code wrong;
  const fs::path here = fs::current_path(wrong);
  return wrong ? "a folder that is gone" : here.string();
}

std::string where_names_are(const fs::path& beside) {
  const std::string here = "names are relative to the current directory, " + current_folder();
  return beside.empty() ? here : here + ", or to that of the run file, " + beside.string();
}

void remove_tree(const fs::path& path) {
  std::error_code wrong;
  fs::remove_all(path, wrong);
  if (wrong) throw file_error(path, "removed", wrong);
}

}  // namespace stretto
