#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "stretto/base/clock.h"
#include "stretto/base/error.h"
#include "stretto/launch/last_word.h"
#include "stretto/launch/launch.h"
#include "stretto/launch/inner/line.h"
#include "stretto/launch/inner/scratch.h"
#include "stretto/launch/inner/stream.h"
#include "stretto/launch/inner/system.h"

namespace stretto {
namespace {

constexpr int endings[] = {SIGTERM, SIGINT};  // how mpirun ends a rank

sigset_t guarded_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int s : endings) sigaddset(&set, s);
  sigaddset(&set, SIGCHLD);
  return set;
}

[[noreturn]] void become_rank(const RankOptions& o, pid_t parent, int last_word) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it died before that
  fcntl(last_word, F_SETFD, 0);
  setenv(last_word_variable, std::to_string(last_word).c_str(), 1);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::vector<std::string> command{o.program};
  command.insert(command.end(), o.arguments.begin(), o.arguments.end());
  execute(command);
}

// Runs the rank, writes its log, does as the launch says and tells it how the rank ended.
class Guardian {
 public:
  // `starter`: the process with which mpirun has started us, as end_of has it.
  Guardian(const RankOptions& o, Fd starter)
      : o_(o),
        starter_(std::move(starter)),
        line_(Line::to(o.line)),
        log_(log_of(o.logs, o.rank), std::ios::app | std::ios::binary) {}

  int guard() {
    line_.tell({.kind = Word::Kind::begins, .rank = o_.rank});
    if (line_.command() != Command::go) {  // it is ending, or gone
      remove_scratch(o_.line);
      return 127;
    }
    try {
      return run();
    } catch (const Error& e) {
      say(e);
      tell_end(e.exit_code() << 8, "");
      return e.exit_code();
    }
  }

 private:
  int run() {
    if (!log_)
      throw Error("launch", "cannot write {}", log_of(o_.logs, o_.rank).string())
          .hint("choose another place with --logs=DIR");
    Pipe out, error, last_word;
    const pid_t own = getpid();
    rank_ = new_process();
    if (rank_ == 0) {
      dup2(out.in.get(), 1);
      dup2(error.in.get(), 2);
      become_rank(o_, own, last_word.in.get());
    }
    for (Pipe* p : {&out, &error, &last_word}) p->in.close();
    const bool all = o_.console == ConsoleRanks::all;
    const std::string prefix = all ? fmt::format("[{}] ", o_.rank) : "";
    Stream streams[] = {{out.out.get(), all || o_.rank == 0 ? stdout : nullptr, prefix, log_},
                        {error.out.get(), all ? stderr : nullptr, prefix, log_}};
    const int status = wait_for_end(streams, last_word.out.get());
    for (Stream& s : streams) s.read_rest();
    tell_end(status, streams[1].last_line());
    return code_of(status);
  }

  int wait_for_end(Stream (&streams)[2], std::optional<int> last_word) {
    const sigset_t set = guarded_signals();
    const Fd signals(signalfd(-1, &set, SFD_CLOEXEC));
    std::optional<int> status;
    const auto ended = [&] {
      int now_is = 0;
      if (!status && waitpid(rank_, &now_is, WNOHANG) == rank_) status = now_is;
      return status.has_value();
    };
    while (!ended()) {
      pollfd fds[] = {to_read(signals.get()),   to_read(line_.fd()),      to_read(last_word),
                      to_read(streams[0].fd()), to_read(streams[1].fd()), to_read(starter())};
      if (poll(fds, std::size(fds), -1) < 0) continue;
      if (fds[2].revents != 0 && !hear(*last_word)) last_word = {};
      for (const int i : {0, 1})
        if (fds[3 + i].revents != 0) streams[i].read_some();
      // Before requests are heard: our rank may be the first that died, and then nobody had asked for it.
      if (ended()) break;
      if (fds[0].revents != 0) obey_signal(signals.get());
      if (fds[1].revents != 0) obey_launch();
      if (fds[5].revents != 0) end_without_starter();
    }
    while (last_word && hear(*last_word)) continue;
    return *status;
  }

  // Whether there may be more.
  bool hear(int last_word) {
    if (read_into(heard_, last_word)) return true;
    if (const auto said = last_word_of(heard_))
      line_.tell({.kind = Word::Kind::said, .rank = o_.rank, .number = said->code, .time = now(), .text = said->why});
    return false;
  }

  std::optional<int> starter() const { return starter_ ? std::optional(starter_.get()) : std::nullopt; }
  // Not every mpirun notices it, and nobody reads our console any more: a full pipe would stop the rank.
  void end_without_starter() {
    starter_.close();
    if (told_) return;
    say(Error("launch", "the process with which mpirun had started this rank has ended")
            .hint("if nobody has killed it, the system may have been short of memory")
            .as(Error::Kind::run));
    end_rank();
  }
  void say(const Error& e) const {
    line_.tell({.kind = Word::Kind::said, .rank = o_.rank, .number = e.exit_code(), .time = now(), .text = e.what()});
  }

  void obey_signal(int signals) {
    signalfd_siginfo info{};
    if (read(signals, &info, sizeof info) == sizeof info && info.ssi_signo != SIGCHLD) end_rank();
  }
  void obey_launch() {
    const std::optional<Command> told = line_.command();
    if (told == Command::stop) {
      kill(rank_, SIGTERM);
    } else if (told == Command::end) {
      end_rank();
    } else if (!told) {  // the launch is gone
      line_.close();
      end_rank();
    }
  }
  void end_rank() {
    told_ = true;
    kill(rank_, SIGKILL);
  }
  void tell_end(int status, const std::string& last_line) {
    const Word word{
        .kind = Word::Kind::ended, .rank = o_.rank, .number = status, .time = now(), .told = told_, .text = last_line};
    if (!line_.open() || !line_.tell(word)) remove_scratch(o_.line);  // it would have done it
  }

  const RankOptions& o_;
  Fd starter_;
  Line line_;
  std::ofstream log_;
  pid_t rank_ = 0;
  bool told_ = false;
  std::string heard_;
};

volatile sig_atomic_t guardian_pid = 0;
void pass_on(int signal) { kill(guardian_pid, signal); }

}  // namespace

// When one rank dies while MPI starts, MPICH's mpirun kills all processes that it knows, at once. Who tells how the
// rank died is therefore not the process that mpirun has started, but a child of it in a session of its own.
int be_rank(const RankOptions& o) {
  const sigset_t set = guarded_signals();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &set, &before);  // the guardian reads them one by one
  Fd starter = end_of(getppid());
  const pid_t own = getpid(), guardian = new_process();
  if (guardian == 0) {
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != own) _exit(127);  // it died before that
    signal(SIGPIPE, SIG_IGN);          // nobody reads the console any more: the log is still written
    try {
      return Guardian(o, std::move(starter)).guard();
    } catch (const Error&) {  // there is no launch that would do it
      remove_scratch(o.line);
      throw;
    }
  }
  guardian_pid = guardian;
  for (const int s : endings) {
    struct sigaction action {};
    action.sa_handler = pass_on;
    action.sa_flags = SA_RESTART;
    sigaction(s, &action, nullptr);
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return code_of(wait_for(guardian));
}

}  // namespace stretto
