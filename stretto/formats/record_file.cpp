#include "stretto/formats/record_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "stretto/base/files.h"

namespace stretto {

RecordFile::RecordFile(std::filesystem::path path) : path_(std::move(path)) {
  // Without O_NONBLOCK a pipe would be waited for until somebody reads it.
  file_ = Fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666));
  if (!file_)
    throw file_error(path_, errno == ENOENT ? "created" : "opened for writing", last_error()).as(Error::Kind::run);
  struct stat info {};
  if (::fstat(file_.get(), &info) != 0 || !S_ISREG(info.st_mode))
    throw Error(path_.string(), "is no file that can be written to").hint("remove it").as(Error::Kind::run);
  whole_ = std::size_t(info.st_size);
}

void RecordFile::append(std::string_view record) {
  if (waiting_.size() + record.size() <= most_waiting) waiting_ += record;
  write_waiting();
}

void RecordFile::write_waiting() {
  for (std::string_view left = waiting_; !left.empty();) {
    const ssize_t done = ::write(file_.get(), left.data(), left.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      const std::error_code why = done < 0 ? last_error() : std::make_error_code(std::errc::io_error);
      trouble_ = file_error(path_, "written", why).what();
      // Half a record is taken back. If even that fails, the next one begins in the middle of a line, which readers
      // skip.
      if (::ftruncate(file_.get(), off_t(whole_)) != 0) trouble_ += ", nor cut back to whole records";
      return;
    }
    left.remove_prefix(std::size_t(done));
  }
  whole_ += waiting_.size();
  waiting_.clear();
  trouble_.clear();
}

}  // namespace stretto
