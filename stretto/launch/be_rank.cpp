#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "stretto/base/error.h"
#include "stretto/launch/launch.h"
#include "stretto/launch/note.h"

namespace stretto {
namespace {

volatile sig_atomic_t guardian_pid = 0, rank_pid = 0, others_failed = 0;  // rank_pid: -1 when it has ended

void pass_on(int signal) { kill(guardian_pid, signal); }

void end_after_step(int) {
  if (rank_pid > 0) kill(rank_pid, SIGTERM);
}
void end_now(int) {  // mpirun ends everybody, in the worst case before we have seen that ours was the first to die
  const int error = errno;
  siginfo_t end{};
  const bool ended =
      rank_pid < 0 ||
      (rank_pid > 0 && (waitid(P_PID, id_t(rank_pid), &end, WEXITED | WNOHANG | WNOWAIT) != 0 || end.si_pid != 0));
  if (!ended) others_failed = 1;
  if (rank_pid > 0) kill(rank_pid, SIGKILL);
  errno = error;
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, nullptr);
}

int code_of(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}

// One of a rank's two streams: whole lines go to the log and, with the rank in front if wanted, to the console.
class Stream {
 public:
  Stream(int fd, std::FILE* console, std::string prefix, std::ofstream& log)
      : fd_(fd), console_(console), prefix_(std::move(prefix)), log_(log) {}
  int fd() const { return fd_; }
  const std::string& last_line() const { return last_; }
  bool last_is_ours() const { return last_is_ours_; }

  bool read_some() {  // false: it has ended
    char text[65536];
    const ssize_t n = read(fd_, text, sizeof text);
    if (n < 0 && errno == EINTR) return true;
    if (n <= 0) {
      if (!line_.empty()) put(line_);
      line_.clear();
      return false;
    }
    line_.append(text, std::size_t(n));
    std::size_t start = 0;
    for (std::size_t end; (end = line_.find('\n', start)) != std::string::npos; start = end + 1)
      put(line_.substr(start, end - start));
    line_.erase(0, start);
    log_.flush();
    if (console_) std::fflush(console_);
    return true;
  }

 private:
  void put(const std::string& line) {
    log_ << line << '\n';
    if (console_) std::fprintf(console_, "%s%s\n", prefix_.c_str(), line.c_str());
    // What a rank says about its end; what MPI says after it is no news.
    const bool ours = line.starts_with("rank ") && line.find(": [") != std::string::npos;
    if (ours || (!line.empty() && !last_is_ours_)) last_ = line;
    last_is_ours_ = last_is_ours_ || ours;
  }
  int fd_;
  std::FILE* console_;
  std::string prefix_, line_, last_;
  bool last_is_ours_ = false;
  std::ofstream& log_;
};

[[noreturn]] void become(const std::string& program, const std::vector<std::string>& arguments, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it died before that
  for (const int s : {SIGUSR1, SIGTERM, SIGINT}) signal(s, SIG_DFL);
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  std::perror(program.c_str());
  _exit(127);
}

// Runs the rank, writes its log and notes how it ended.
int guard(const std::filesystem::path& logs, ConsoleRanks console, int rank, const std::string& program,
          const std::vector<std::string>& arguments) {
  std::ofstream log(log_of(logs, rank), std::ios::app | std::ios::binary);
  if (!log)
    throw Error("launch", "cannot write {}", log_of(logs, rank).string()).hint("choose another place with --logs=DIR");
  int out[2], error[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(error, O_CLOEXEC) != 0)
    throw Error("launch", "no pipe can be made: too many open files").as(Error::Kind::run);
  handle(SIGUSR1, end_after_step);
  handle(SIGTERM, end_now);
  handle(SIGINT, end_now);
  setenv(code_variable, code_path(logs, rank).c_str(), 1);
  const pid_t own = getpid(), child = fork();
  if (child == 0) {
    dup2(out[1], 1);
    dup2(error[1], 2);
    become(program, arguments, own);
  }
  if (child < 0) throw Error("launch", "no process can be made: too many of them").as(Error::Kind::run);
  rank_pid = child;
  if (others_failed) kill(child, SIGKILL);
  note_pids(logs, rank, own, child);
  close(out[1]);
  close(error[1]);
  const bool all = console == ConsoleRanks::all;
  const std::string prefix = all ? fmt::format("[{}] ", rank) : "";
  Stream streams[] = {{out[0], all || rank == 0 ? stdout : nullptr, prefix, log},
                      {error[0], all ? stderr : nullptr, prefix, log}};
  bool open[] = {true, true};
  while (open[0] || open[1]) {
    pollfd fds[] = {{open[0] ? out[0] : -1, POLLIN, 0}, {open[1] ? error[0] : -1, POLLIN, 0}};
    if (poll(fds, 2, -1) < 0) continue;  // a signal
    for (int i = 0; i < 2; ++i)
      if (fds[i].revents != 0) open[i] = streams[i].read_some();
  }
  const int status = wait_for(child);
  rank_pid = -1;
  note_end(logs, rank,
           {.status = status,
            .time = steady_now(),
            .told = others_failed != 0,
            .explained = streams[1].last_is_ours(),
            .last_line = streams[1].last_line()});
  return code_of(status);
}

}  // namespace

// When one rank dies while MPI starts, MPICH's mpirun kills all processes that it knows, at once. Who notes how the
// rank died is therefore not the process that mpirun has started, but a child of it in a session of its own.
int be_rank(const std::filesystem::path& logs, ConsoleRanks console, int rank, const std::string& program,
            const std::vector<std::string>& arguments) {
  const pid_t own = getpid(), guardian = fork();
  if (guardian < 0) throw Error("launch", "no process can be made: too many of them").as(Error::Kind::run);
  if (guardian == 0) {
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != own) _exit(127);  // it died before that
    return guard(logs, console, rank, program, arguments);
  }
  guardian_pid = guardian;
  for (const int s : {SIGUSR1, SIGTERM, SIGINT}) handle(s, pass_on);
  return code_of(wait_for(guardian));
}

}  // namespace stretto
