#include "stretto/launch/inner/stream.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "stretto/base/files.h"
#include "stretto/launch/inner/system.h"

namespace stretto {

void Screen::put(std::string_view text) {
  if (open_) waiting_ += text;
}

// A pipe or terminal that says it can be written to takes so much at once.
void Screen::write_some() {
  const ssize_t n = ::write(fd_, waiting_.data(), std::min<std::size_t>(waiting_.size(), PIPE_BUF));
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  open_ = n > 0;
  if (n < 0 && errno != EPIPE) lost_ = last_error();
  waiting_.erase(0, open_ ? std::size_t(n) : waiting_.npos);
}

void Screen::write_rest() {
  while (!waiting_.empty()) write_some();
}

void Stream::read_some() {
  const bool more = read_into(line_, fd_.get());
  if (!more && errno == EAGAIN) return;
  if (!more) fd_.close();
  if (!more && !line_.empty()) line_ += '\n';
  std::size_t start = 0;
  for (std::size_t end; (end = line_.find('\n', start)) != std::string::npos; start = end + 1)
    put(line_.substr(start, end - start + 1));
  line_.erase(0, start);
}

void Stream::read_rest() {
  if (!fd_) return;
  fcntl(fd_.get(), F_SETFL, fcntl(fd_.get(), F_GETFL) | O_NONBLOCK);
  while (fd_) {
    errno = 0;
    read_some();
    if (errno == EAGAIN) fd_.close();  // a child of the rank's still has it
  }
}

// A log that cannot be written is no reason to end a run.
void Stream::put(const std::string& line) {
  const ssize_t ignored = ::write(log_->get(), line.data(), line.size());
  (void)ignored;
  if (screen_) screen_->put(prefix_ + line);
  if (line.size() > 1) last_ = line.substr(0, line.size() - 1);
}

}  // namespace stretto
