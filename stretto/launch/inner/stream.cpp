#include "stretto/launch/inner/stream.h"

#include <fcntl.h>

#include <utility>

#include "stretto/launch/inner/system.h"

namespace stretto {

void Stream::read_some() {
  open_ = read_into(line_, fd_);
  std::size_t start = 0;
  for (std::size_t end; (end = line_.find('\n', start)) != std::string::npos; start = end + 1)
    put(line_.substr(start, end - start));
  line_.erase(0, start);
  if (!open_ && !line_.empty()) put(std::exchange(line_, ""));
  log_.flush();
  if (console_) std::fflush(console_);
}

void Stream::read_rest() {
  fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) | O_NONBLOCK);
  while (open_) read_some();
}

void Stream::put(const std::string& line) {
  log_ << line << '\n';
  if (console_) std::fprintf(console_, "%s%s\n", prefix_.c_str(), line.c_str());
  if (!line.empty()) last_ = line;
}

}  // namespace stretto
