#include "stretto/launch/last_word.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "stretto/base/fd.h"

namespace stretto {
namespace {

constexpr std::size_t most_word_bytes = 16384;   // bytes: a pipe takes them without waiting
std::atomic<std::optional<int>> pipe_to_launch;  // whoever speaks first takes it: a watchdog, say

}  // namespace

void keep_last_word() {
  const char* text = std::getenv(last_word_variable);
  if (!text) return;
  const int fd = std::atoi(text);
  struct stat what {};
  // A variable that was left over may name any descriptor.
  if (fd > 2 && fstat(fd, &what) == 0 && S_ISFIFO(what.st_mode) && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0)
    pipe_to_launch = fd;
  unsetenv(last_word_variable);
}

void say_last_word(int code, const std::string& why) {
  const std::optional<int> pipe = pipe_to_launch.exchange(std::nullopt);
  if (!pipe) return;
  const Fd fd(*pipe);
  const std::string all = fmt::format("{}\n{}", code, why.substr(0, most_word_bytes));
  const ssize_t ignored = write(fd.get(), all.data(), all.size());
  (void)ignored;  // a launch that is gone has taken its ranks along
}

std::optional<LastWord> last_word_of(const std::string& bytes) {
  const std::size_t end = bytes.find('\n');
  if (end == std::string::npos) return {};
  return LastWord{.code = std::atoi(bytes.c_str()), .why = bytes.substr(end + 1)};
}

}  // namespace stretto
