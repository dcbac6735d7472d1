#include "support/child.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <stdexcept>

#include "support/files.h"

namespace stretto::test {
namespace {
constexpr uid_t nobody_id = 61234;
}

Ended in_child(const std::function<void()>& f) {
  const Folder folder;
  const std::string file = folder / "error";
  const int error = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(error, STDERR_FILENO);
    try {
      f();
      std::fflush(nullptr);
      _exit(0);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s\n", e.what());
      std::fflush(nullptr);
      _exit(99);
    }
  }
  ::close(error);
  int status = 0;
  waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text_of(file)};
}

void limit(decltype(RLIMIT_AS) what, rlim_t most) {
  rlimit l{};
  getrlimit(what, &l);
  l.rlim_cur = most;
  if (setrlimit(what, &l) != 0) throw std::runtime_error("the limit cannot be set");
}

bool can_become_nobody() { return getuid() == 0; }

void become_nobody() {
  if (setgroups(0, nullptr) != 0 || setgid(nobody_id) != 0 || setuid(nobody_id) != 0)
    throw std::runtime_error("cannot become another user");
}

}  // namespace stretto::test
