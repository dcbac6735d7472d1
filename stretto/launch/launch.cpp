#include "stretto/launch/launch.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <thread>

#include "stretto/base/error.h"
#include "stretto/launch/note.h"

#ifndef STRETTO_MPIRUN
#define STRETTO_MPIRUN ""
#endif

namespace stretto {
namespace {

namespace fs = std::filesystem;

volatile sig_atomic_t signals_seen = 0;
void count_signal(int) { signals_seen = signals_seen + 1; }

class Signals {  // while we answer for others
 public:
  Signals() {
    signals_seen = 0;
    struct sigaction action {};
    action.sa_handler = count_signal;
    sigaction(SIGINT, &action, &interrupt_);
    sigaction(SIGTERM, &action, &terminate_);
  }
  ~Signals() {
    sigaction(SIGINT, &interrupt_, nullptr);
    sigaction(SIGTERM, &terminate_, nullptr);
  }

 private:
  struct sigaction interrupt_ {
  }, terminate_{};
};

std::string in_path(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0 ? name : "";
  const char* path = std::getenv("PATH");
  std::string all = path ? path : "/usr/bin:/bin";
  for (std::size_t start = 0; start <= all.size();) {
    const std::size_t end = std::min(all.find(':', start), all.size());
    const std::string candidate = all.substr(start, end - start) + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    start = end + 1;
  }
  return "";
}

std::string find_mpirun(const std::string& wanted) {
  std::vector<std::string> names;
  if (!wanted.empty())
    names = {wanted};
  else
    names = {STRETTO_MPIRUN, "mpirun", "mpiexec"};
  for (const std::string& name : names)
    if (const std::string found = name.empty() ? "" : in_path(name); !found.empty()) return found;
  throw Error("launch", "{} is not there", wanted.empty() ? "no mpirun" : "'" + wanted + "'")
      .hint("install an MPI (Debian: openmpi-bin), or run on the threads of one process: stretto train RUN.toml");
}

bool is_open_mpi(const std::string& mpirun) {
  std::FILE* pipe = popen(fmt::format("'{}' --version 2>/dev/null", mpirun).c_str(), "r");
  if (!pipe) return false;
  char text[4096] = {};
  const std::size_t n = std::fread(text, 1, sizeof text - 1, pipe);
  pclose(pipe);
  return std::string(text, n).find("Open MPI") != std::string::npos ||
         std::string(text, n).find("OpenRTE") != std::string::npos;
}

pid_t start(const LaunchOptions& o) {
  std::vector<std::string> command;
  if (o.ranks > 1) {
    const std::string mpirun = find_mpirun(o.mpirun);
    command = {mpirun, "-n", std::to_string(o.ranks)};
    const bool enough = o.ranks <= int(std::thread::hardware_concurrency());
    if (is_open_mpi(mpirun)) {
      for (const char* word : {"--oversubscribe", "--bind-to"}) command.emplace_back(word);
      command.emplace_back(enough ? "core" : "none");
    }
  }
  for (const std::string& word :
       {o.program, std::string("launch"), std::string("--as-rank"), o.logs.string(),
        std::string(o.console == ConsoleRanks::all ? "--console=all" : "--console=first"), std::string("--")})
    command.push_back(word);
  command.insert(command.end(), o.arguments.begin(), o.arguments.end());
  const fs::path noise = o.logs / "mpirun.log";
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::fflush(nullptr);
  const pid_t own = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw Error("launch", "no process can be made: too many of them").as(Error::Kind::run);
  if (pid > 0) return pid;
  for (const char* name : {"RANK", "WORLD_SIZE"}) unsetenv(name);  // another launcher's, or left over
  setpgid(0, 0);  // a Ctrl-C of the terminal is for us alone: we pass it on
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != own) _exit(127);
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  // What mpirun itself says about ranks that failed is said better by us.
  if (o.ranks > 1 && o.console == ConsoleRanks::first && !std::freopen(noise.c_str(), "w", stderr)) _exit(127);
  execv(argv[0], argv.data());
  std::perror(argv[0]);
  _exit(127);
}

void signal_guardians(const LaunchOptions& o, int signal) {
  for (int r = 0; r < o.ranks; ++r)
    if (const auto pids = read_pids(o.logs, r); pids && !read_end(o.logs, r)) kill(pids->first, signal);
}

// mpirun ends all ranks when one has failed, and itself after the last. Not always: when one dies while MPI starts,
// Open MPI's may wait for ever.
class Impatience {
 public:
  void look(const LaunchOptions& o, pid_t mpirun) {
    const double t = steady_now();
    if (t < next_) return;
    next_ = t + 0.25;
    int ended = 0;
    bool failed = false;
    for (int r = 0; r < o.ranks; ++r)
      if (const auto e = read_end(o.logs, r)) ++ended, failed = failed || e->status != 0;
    if (!failed && ended < o.ranks) return;
    if (since_ == 0) since_ = t;
    if (ended < o.ranks && t > since_ + kForOthers) signal_guardians(o, SIGTERM);
    if (ended < o.ranks) return;
    if (gone_ == 0) gone_ = t;
    if (t > gone_ + 2 * kForMpirun)
      kill(mpirun, SIGKILL);
    else if (t > gone_ + kForMpirun)
      kill(mpirun, SIGTERM);
  }

 private:
  static constexpr double kForOthers = 5, kForMpirun = 2.5;  // seconds
  double next_ = 0, since_ = 0, gone_ = 0;                   // since_: a rank has failed; gone_: all have ended
};

// A guardian whose mpirun has ended ends its rank and notes how that died.
void await_notes(const LaunchOptions& o) {
  constexpr double longest = 2;  // seconds
  const auto writing = [&] {
    for (int r = 0; r < o.ranks; ++r)
      if (const auto pids = read_pids(o.logs, r); pids && !read_end(o.logs, r) && kill(pids->first, 0) == 0)
        return true;
    return false;
  };
  for (const double start = steady_now(); writing() && steady_now() < start + longest;) usleep(2000);
}

// Whoever is still there: a guardian takes its rank along.
void end_leftovers(const LaunchOptions& o) {
  for (int r = 0; r < o.ranks; ++r)
    if (const auto pids = read_pids(o.logs, r); pids && !read_end(o.logs, r)) {
      kill(pids->first, SIGKILL);
      kill(pids->second, SIGKILL);
    }
}

std::vector<std::uintmax_t> log_sizes(const LaunchOptions& o) {
  std::vector<std::uintmax_t> sizes;
  for (int r = 0; r < o.ranks; ++r) {
    std::error_code none;
    const std::uintmax_t size = fs::file_size(log_of(o.logs, r), none);
    sizes.push_back(none ? 0 : size);
  }
  return sizes;
}

// Of a rank whose guardian was killed before it could note anything: MPICH's mpirun does that. `from` is where its log
// began this time.
std::optional<RankEnd> last_words(const LaunchOptions& o, int rank, std::uintmax_t from) {
  std::ifstream log(log_of(o.logs, rank));
  log.seekg(std::streamoff(from));
  for (std::string line; std::getline(log, line);)
    if (line.starts_with(fmt::format("rank {}: [", rank)))
      return RankEnd{.status = read_code(o.logs, rank) << 8, .told = true, .explained = true, .last_line = line};
  return {};
}

LaunchResult judge(const LaunchOptions& o, int status, const std::vector<std::uintmax_t>& logs) {
  LaunchResult result;
  std::optional<RankEnd> first;
  int well = 0;
  for (int r = 0; r < o.ranks; ++r) {
    std::optional<RankEnd> e = read_end(o.logs, r);
    if (!e) e = last_words(o, r, logs[std::size_t(r)]);
    if (e && e->status == 0) ++well;
    if (!e || e->status == 0 || (e->told && !e->explained)) continue;
    // Who says why, or was killed, comes before those whom MPI has taken along.
    const auto order = [](const RankEnd& x) { return std::pair(!x.explained && !WIFSIGNALED(x.status), x.time); };
    if (first && order(*first) <= order(*e)) continue;
    first = e;
    result.rank = r;
  }
  if (!first) {
    if (status == 0 || well == o.ranks) return result;
    result.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    result.message = fmt::format("mpirun ended with code {}, and no rank had failed before; see {}", result.code,
                                 (o.logs / "mpirun.log").string());
    return result;
  }
  const std::string log = log_of(o.logs, result.rank).string();
  if (WIFSIGNALED(first->status) && !first->told) {
    const int signal = WTERMSIG(first->status);
    result.code = 128 + signal;
    result.message =
        fmt::format("rank {} was killed by signal {} ({}); its log is {}", result.rank, signal, strsignal(signal), log);
  } else {
    // One who had spoken may have been ended before he could end himself.
    result.code = WIFSIGNALED(first->status) ? read_code(o.logs, result.rank) : WEXITSTATUS(first->status);
    result.message = fmt::format("rank {} ended with code {}; its log is {}{}{}", result.rank, result.code, log,
                                 first->last_line.empty() ? "" : "\n", first->last_line);
  }
  return result;
}

}  // namespace

LaunchResult launch(const LaunchOptions& o) {
  if (o.ranks > 1) find_mpirun(o.mpirun);  // before a directory is left behind
  std::error_code wrong;
  fs::create_directories(o.logs, wrong);
  if (wrong)
    throw Error("launch", "cannot make the directory '{}': {}", o.logs.string(), wrong.message())
        .hint("choose another place with --logs=DIR");
  remove_notes(o.logs, o.ranks);
  const std::vector<std::uintmax_t> logs = log_sizes(o);
  const Signals signals;
  const pid_t mpirun = start(o);
  int status = 0, passed = 0;
  Impatience impatience;
  while (waitpid(mpirun, &status, WNOHANG) == 0) {
    for (; passed < signals_seen; ++passed) {
      if (passed == 0)
        signal_guardians(o, SIGUSR1);
      else
        kill(mpirun, SIGTERM), signal_guardians(o, SIGTERM);
    }
    impatience.look(o, mpirun);
    usleep(20000);
  }
  await_notes(o);
  end_leftovers(o);
  LaunchResult result = judge(o, status, logs);
  result.stopped = signals_seen > 0;
  remove_notes(o.logs, o.ranks);
  return result;
}

}  // namespace stretto
