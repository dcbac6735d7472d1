#include "stretto/formats/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "stretto/base/error.h"

namespace stretto {

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe is refused, not waited for
  if (file < 0) throw Error(path.string(), "cannot be opened: {}", std::strerror(errno));
  struct stat info {};
  const bool known = ::fstat(file, &info) == 0;
  int reason = known ? 0 : errno;
  void* data = nullptr;
  if (known && S_ISREG(info.st_mode) && info.st_size > 0) {
    data = ::mmap(nullptr, std::size_t(info.st_size), PROT_READ, MAP_PRIVATE, file, 0);
    if (data == MAP_FAILED) reason = errno;
  }
  ::close(file);
  if (reason) throw Error(path.string(), "cannot be read: {}", std::strerror(reason));
  if (!S_ISREG(info.st_mode))
    throw Error(path.string(), "is {}, not a file",
                S_ISDIR(info.st_mode)    ? "a directory"
                : S_ISFIFO(info.st_mode) ? "a pipe"
                                         : "a device");
  data_ = static_cast<const std::byte*>(data);
  size_ = std::size_t(info.st_size);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)), path_(std::move(other.path_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(path_, other.path_);
  return *this;
}

}  // namespace stretto
