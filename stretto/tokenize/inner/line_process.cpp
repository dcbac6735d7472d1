#include "stretto/tokenize/inner/line_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "stretto/base/error.h"

namespace stretto {
namespace {

[[noreturn]] void cannot_start(int why) {
  throw Error("process", "no process can be made: {}", std::generic_category().message(why))
      .hint("ulimit -u and ulimit -n say how many processes and open files are allowed")
      .as(Error::Kind::run);
}

// Above the three that a program finds open, so that none of them is overwritten by another.
Fd above_standard(int fd) {
  Fd low(fd);
  if (!low) cannot_start(errno);
  Fd high(fcntl(low.get(), F_DUPFD_CLOEXEC, 3));
  if (!high) cannot_start(errno);
  return high;
}

struct SpawnActions {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  SpawnActions() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnActions() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
};

}  // namespace

std::optional<LineProcess> LineProcess::start(std::vector<std::string> command) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) cannot_start(errno);
  Fd ours(ends[0]);
  const Fd theirs = above_standard(ends[1]);
  Fd errors = above_standard(memfd_create("errors", MFD_CLOEXEC));
  SpawnActions how;
  posix_spawn_file_actions_adddup2(&how.files, theirs.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&how.files, theirs.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&how.files, errors.get(), STDERR_FILENO);
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  pid_t process = 0;
  const int wrong = posix_spawnp(&process, words[0], &how.files, &how.attributes, words.data(), environ);
  if (wrong == ENOENT || wrong == EACCES || wrong == ENOTDIR) return std::nullopt;
  if (wrong != 0) cannot_start(wrong);
  LineProcess made;
  made.line_ = std::move(ours);
  made.errors_ = std::move(errors);
  made.process_ = process;
  return made;
}

LineProcess& LineProcess::operator=(LineProcess&& other) noexcept {
  std::swap(line_, other.line_);
  std::swap(errors_, other.errors_);
  std::swap(process_, other.process_);
  std::swap(status_, other.status_);
  std::swap(received_, other.received_);
  std::swap(taken_, other.taken_);
  return *this;
}

LineProcess::~LineProcess() { reap(true); }

void LineProcess::reap(bool kills) {
  if (!process_) return;
  line_.close();
  if (kills) kill(*process_, SIGKILL);
  while (waitpid(*process_, &status_, 0) < 0)
    if (errno != EINTR) {  // somebody else has waited for all children
      status_ = 0;
      break;
    }
  process_.reset();
}

// Waits until something can be sent, or has come: takes that in, and says how many bytes were sent. None: the program
// has closed its end.
std::optional<std::size_t> LineProcess::exchange(std::string_view send_this) {
  pollfd ready{line_.get(), short(POLLIN | (send_this.empty() ? 0 : POLLOUT)), 0};
  if (poll(&ready, 1, -1) < 0) return errno == EINTR ? std::optional<std::size_t>(0) : std::nullopt;
  const auto may_go_on = [] { return errno == EAGAIN || errno == EINTR; };
  if (ready.revents & ~POLLOUT) {
    std::array<char, 65536> bytes;
    const ssize_t n = recv(line_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n == 0 || (n < 0 && !may_go_on())) return std::nullopt;
    if (n > 0) received_.append(bytes.data(), n);
  }
  if (!(ready.revents & POLLOUT)) return 0;
  const ssize_t n = send(line_.get(), send_this.data(), send_this.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n < 0 && !may_go_on()) return std::nullopt;
  return std::max<ssize_t>(n, 0);
}

void LineProcess::put(std::string_view line) {
  for (std::string_view part : {line, std::string_view("\n")})
    while (!part.empty()) {
      const std::optional<std::size_t> sent = exchange(part);
      if (!sent) return;  // take() says so
      part.remove_prefix(*sent);
    }
}

std::optional<std::string> LineProcess::take() {
  for (std::size_t looked = taken_;;) {
    if (const std::size_t end = received_.find('\n', looked); end != received_.npos) {
      std::string line = received_.substr(taken_, end - taken_);
      taken_ = end + 1;
      if (taken_ == received_.size()) received_.clear(), taken_ = 0;
      return line;
    }
    looked = received_.size() - taken_;
    received_.erase(0, std::exchange(taken_, 0));
    if (!exchange({})) return std::nullopt;
  }
}

LineProcess::Ending LineProcess::ending() {
  reap(false);
  Ending e;
  if (WIFSIGNALED(status_)) e.signal = WTERMSIG(status_);
  std::string text(4096, '\0');
  const off_t size = std::max<off_t>(lseek(errors_.get(), 0, SEEK_END), 0);
  const ssize_t n = pread(errors_.get(), text.data(), text.size(), std::max<off_t>(size - off_t(text.size()), 0));
  text.resize(std::max<ssize_t>(n, 0));
  text.resize(text.find_last_not_of("\n ") + 1);  // npos + 1 is 0
  e.last_line = text.substr(text.find_last_of('\n') + 1);
  return e;
}

}  // namespace stretto
