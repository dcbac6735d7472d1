#include "stretto/formats/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "stretto/base/error.h"
#include "stretto/base/files.h"

namespace stretto {
namespace {

constexpr std::size_t buffer_bytes = 1 << 16;

void refuse_folder(const std::filesystem::path& path) {
  if (is_folder(path)) throw Error(path.string(), "is a directory, not a file").hint("name a file in it");
}

}  // namespace

AtomicFile::AtomicFile(const std::filesystem::path& path) : path_(path) {
  refuse_folder(path);
  static std::atomic<unsigned> count{0};
  temporary_ = path;
  temporary_ += fmt::format(".{}-{}.tmp", ::getpid(), count++);
  file_ = Fd(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file_) fail("created");
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void check_directory_of(const std::filesystem::path& file) {
  refuse_folder(file);
  const std::filesystem::path directory = file.parent_path();
  if (directory.empty() || is_folder(directory)) return;
  throw Error(file.string(), "cannot be created: there is no directory '{}'", directory.string())
      .hint("make it, or choose another place");
}

void AtomicFile::fail(const char* doing) const {
  const int reason = errno;
  Error error(path_.string(), "cannot be {}: {}", doing, std::strerror(reason));
  if (reason == ENOSPC || reason == EDQUOT)
    std::move(error).hint("free some space; what was there before is unchanged");
  if (reason == EFBIG) std::move(error).hint("raise the limit on the size of files (ulimit -f)");
  if (reason == ENOENT) check_directory_of(path_);
  std::move(error).or_hint("choose another place");
  throw_run_error(std::move(error), {reason, std::generic_category()});
}

void AtomicFile::put(std::size_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    end_if_interrupted();
    const ssize_t done = ::pwrite(file_.get(), bytes.data(), bytes.size(), off_t(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done == 0) errno = EIO;
    if (done <= 0) fail("written");
    bytes = bytes.subspan(std::size_t(done));
    offset += std::size_t(done);
  }
}

void AtomicFile::drain() {
  put(size_, buffer_);
  size_ += buffer_.size();
  buffer_.clear();
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (buffer_.size() + bytes.size() > buffer_bytes) drain();
  if (bytes.size() > buffer_bytes) {
    put(size_, bytes);
    size_ += bytes.size();
  } else {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
}

void AtomicFile::write_at(std::size_t offset, std::span<const std::byte> bytes) {
  drain();
  STRETTO_ASSERT(offset <= size_ && bytes.size() <= size_ - offset, "write_at beyond what was written");
  put(offset, bytes);
}

void AtomicFile::commit() {
  STRETTO_ASSERT(bool(file_), "a file is committed once");
  drain();
  if (::fsync(file_.get()) != 0) fail("made durable");
  if (!file_.close()) fail("closed");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail("put in its place");
  temporary_.clear();
  sync_directory(path_.parent_path());
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

// "<name>.<process>-<count>.tmp" of a file, ".<name>-<process>.tmp" of a directory.
bool is_unfinished(const std::filesystem::path& path) {
  std::string name = path.filename().string();
  const auto takes_number = [&](char before) {
    const std::size_t last = name.find_last_not_of("0123456789");
    const bool there = last != name.npos && last + 1 < name.size() && name[last] == before;
    if (there) name.resize(last);
    return there;
  };
  constexpr std::string_view ending = ".tmp";
  if (!name.ends_with(ending)) return false;
  name.resize(name.size() - ending.size());
  if (!takes_number('-')) return false;
  return (name.starts_with('.') && name.size() > 1) || takes_number('.');
}

void remove_unfinished(const std::filesystem::path& directory) {
  for (const std::filesystem::path& entry : entries_of(directory))
    if (is_unfinished(entry)) remove_tree(entry);
}

}  // namespace stretto
