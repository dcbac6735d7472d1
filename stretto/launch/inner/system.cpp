#include "stretto/launch/inner/system.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "stretto/base/error.h"

namespace stretto {

Pipe::Pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw Error("launch", "no pipe can be made: too many open files")
        .hint("ulimit -n allows more of them")
        .as(Error::Kind::run);
  out = Fd(ends[0]);
  in = Fd(ends[1]);
}

pid_t new_process() {
  std::fflush(nullptr);
  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);  // until the child has forgotten our handlers
  const pid_t pid = fork();
  if (pid == 0)
    for (const int s : {SIGINT, SIGTERM, SIGCHLD, SIGPIPE}) signal(s, SIG_DFL);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0)
    throw Error("launch", "no process can be made: too many of them")
        .hint("ulimit -u allows more of them")
        .as(Error::Kind::run);
  return pid;
}

void execute(std::vector<std::string> command) {
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  std::perror(argv[0]);
  _exit(127);
}

bool read_into(std::string& text, int fd) {
  char bytes[65536];
  ssize_t n = 0;
  do n = read(fd, bytes, sizeof bytes);
  while (n < 0 && errno == EINTR);
  if (n > 0) text.append(bytes, n);
  return n > 0;
}

pollfd to_read(std::optional<int> fd) { return {Fd::or_none(fd), POLLIN, 0}; }

Fd end_of(pid_t process) { return Fd(int(syscall(SYS_pidfd_open, process, 0))); }

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}

int code_of(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

}  // namespace stretto
