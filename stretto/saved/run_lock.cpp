#include "stretto/saved/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <ctime>
#include <thread>

#include "stretto/base/files.h"
#include "stretto/formats/utf8.h"

namespace stretto {
namespace {

// A process that has just been killed holds its lock until the system has taken it apart.
constexpr int lock_tries = 20;
constexpr std::chrono::milliseconds lock_pause{50};

std::string description() {
  char host[256] = "", when[32] = "";
  ::gethostname(host, sizeof host - 1);
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &local);
  return fmt::format("process {} on {} since {}", ::getpid(), *host ? host : "this machine", when);
}

std::string holder(const Fd& file) {
  char text[300];
  const ssize_t read = ::pread(file.get(), text, sizeof text, 0);
  return read > 0 ? shown(std::string_view(text, read), sizeof text) : "another process";
}

// Where locks are not known (some network file systems) there is none: as well as it can be done.
bool try_lock(const Fd& file) {
  for (int i = 0;; ++i) {
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK && errno != EINTR) return true;
    if (i == lock_tries) return false;
    std::this_thread::sleep_for(lock_pause);
  }
}

}  // namespace

RunLock::RunLock(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / file_name;
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0666));
  if (!file) throw file_error(path, "opened", last_error());
  struct stat info {};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode))
    throw Error(path.string(), "is no file").hint("remove it");
  if (!try_lock(file))
    throw Error("log.dir", "'{}' is in use by {}", directory.string(), holder(file))
        .hint("wait until that run has ended, or stop it; or choose another directory with --log.dir=DIR");
  const std::string text = description();
  // Who is refused later reads it; nothing else depends on it.
  [[maybe_unused]] const bool noted =
      ::ftruncate(file.get(), 0) == 0 && ::pwrite(file.get(), text.data(), text.size(), 0) == ssize_t(text.size());
  file_ = std::move(file);
}

RunLock::~RunLock() {
  if (!file_) return;
  [[maybe_unused]] const int emptied = ::ftruncate(file_.get(), 0);
}

}  // namespace stretto
