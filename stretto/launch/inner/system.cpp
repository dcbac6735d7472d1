#include "stretto/launch/inner/system.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "stretto/base/error.h"
#include "stretto/base/files.h"

namespace stretto {
namespace {

constexpr std::string_view other_logs = "remove it, or choose another place with --logs=DIR";

}  // namespace

Pipe::Pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw Error("launch", "no pipe can be made: {}", last_error().message())
        .hint("ulimit -n allows more of them")
        .as(Error::Kind::run);
  out = Fd(ends[0]);
  in = Fd(ends[1]);
}

pid_t start_process(const std::function<void()>& work) {
  std::fflush(nullptr);
  sigset_t all, none, before;
  sigfillset(&all);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &all, &before);  // until the child has forgotten our handlers
  const pid_t pid = fork();
  if (pid == 0) try {
      for (const int s : {SIGINT, SIGTERM, SIGCHLD, SIGPIPE}) signal(s, SIG_DFL);
      sigprocmask(SIG_SETMASK, &none, nullptr);
      work();
      _exit(0);
    } catch (const std::exception& e) {  // nothing of ours may be taken down: it is the parent's
      std::fprintf(stderr, "%s\n", e.what());
      _exit(127);
    }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0)
    throw Error("launch", "no process can be made: {}", last_error().message())
        .hint("ulimit -u allows more of them")
        .as(Error::Kind::run);
  return pid;
}

void execute(std::vector<std::string> command, std::optional<std::vector<std::string>> environment) {
  const auto pointers = [](std::vector<std::string>& words) {
    std::vector<char*> all;
    for (std::string& word : words) all.push_back(word.data());
    all.push_back(nullptr);
    return all;
  };
  std::vector<char*> argv = pointers(command);
  if (environment)
    execve(argv[0], argv.data(), pointers(*environment).data());
  else
    execv(argv[0], argv.data());
  std::perror(argv[0]);
  _exit(127);
}

// Without O_NONBLOCK a pipe would be waited for until somebody reads it.
Fd open_log(const std::filesystem::path& path, int flags) {
  Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags, 0666));
  struct stat info {};
  if (!file && errno == ELOOP) throw Error("launch", "'{}' is a link", path.string()).hint("{}", other_logs);
  if (!file) throw file_error(path, "written", last_error()).hint("{}", other_logs);
  if (fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode))
    throw Error("launch", "'{}' is no file that can be written to", path.string()).hint("{}", other_logs);
  return file;
}

void Poll::add(std::optional<int> fd, short event, Call call) {
  if (!fd) return;
  fds_.push_back({*fd, event, 0});
  calls_.push_back(std::move(call));
}

void Poll::wait(double seconds) {
  if (::poll(fds_.data(), fds_.size(), int(seconds * 1e3)) <= 0) return;
  for (std::size_t i = 0; i < fds_.size(); ++i)
    if (fds_[i].revents != 0) calls_[i]();
}

bool read_into(std::string& text, int fd) {
  char bytes[65536];
  ssize_t n = 0;
  do n = read(fd, bytes, sizeof bytes);
  while (n < 0 && errno == EINTR);
  if (n > 0) text.append(bytes, n);
  return n > 0;
}

Fd end_of(pid_t process) { return Fd(int(syscall(SYS_pidfd_open, process, 0))); }

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}

int code_of(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

}  // namespace stretto
