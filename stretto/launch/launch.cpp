#include "stretto/launch/launch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "stretto/base/clock.h"
#include "stretto/base/error.h"
#include "stretto/launch/inner/crew.h"
#include "stretto/launch/mpirun.h"
#include "stretto/launch/inner/scratch.h"
#include "stretto/launch/inner/system.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

int signal_pipe = 0;  // set before signals are noted
void note_signal(int signal) {
  const int error = errno;
  const char byte = char(signal);
  const ssize_t ignored = write(signal_pipe, &byte, 1);
  (void)ignored;
  errno = error;
}

class Signals {  // while we answer for others; of mpirun's end, too
 public:
  Signals() {
    for (const Fd* end : {&pipe_.out, &pipe_.in}) fcntl(end->get(), F_SETFL, O_NONBLOCK);
    signal_pipe = pipe_.in.get();
    struct sigaction action {};
    action.sa_handler = note_signal;
    action.sa_flags = SA_RESTART;
    for (std::size_t i = 0; i < heard_signals.size(); ++i) sigaction(heard_signals[i], &action, &before_[i]);
  }
  ~Signals() {
    for (std::size_t i = 0; i < heard_signals.size(); ++i) sigaction(heard_signals[i], &before_[i], nullptr);
  }
  Signals(const Signals&) = delete;
  int fd() const { return pipe_.out.get(); }
  std::optional<int> next() const {  // that asks us to end
    char byte = 0;
    while (read(pipe_.out.get(), &byte, 1) == 1)
      if (byte != SIGCHLD) return byte;
    return {};
  }

 private:
  static constexpr std::array heard_signals{SIGINT, SIGTERM, SIGCHLD};
  std::array<struct sigaction, heard_signals.size()> before_{};
  Pipe pipe_;
};

// Logs are of one launch at a time. The system forgets the lock with the process.
class LogDirectory {
 public:
  explicit LogDirectory(const fs::path& path) {
    std::error_code wrong;
    fs::create_directories(path, wrong);
    if (wrong)
      throw Error("launch", "cannot make the directory '{}': {}", path.string(), wrong.message())
          .hint("choose another place with --logs=DIR");
    fd_ = Fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    // A file system that knows no locks has none.
    if (fd_ && flock(fd_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      throw Error("launch", "another launch is writing its logs to '{}'", path.string())
          .hint("choose another place with --logs=DIR, or wait for its end");
  }

 private:
  Fd fd_;
};

// mpirun ends all ranks when one has failed, and itself after the last. Not always: when one dies while MPI starts,
// Open MPI's may wait for ever, and with too few descriptors it waits before it has started any.
class Supervision {
 public:
  explicit Supervision(const LaunchOptions& o) : o_(o), crew_(o.ranks), mpirun_(start_ranks(o, crew_.line())) {}
  ~Supervision() { remove_scratch(crew_.line()); }

  LaunchResult run() {
    while (!mpirun_ended()) {
      crew_.listen(0.1, signals_.fd());
      while (const auto signal = signals_.next()) obey(*signal);
      look_at_ranks();
      look_at_mpirun();
    }
    crew_.dismiss();
    for (const double grace : {2.0, 1.0}) {  // a guardian tells how its rank ended; one that cannot is ended
      for (const double start = now(); crew_.present() > 0 && now() < start + grace;) crew_.listen(0.1);
      crew_.kill();
    }
    course_.ranks = crew_.courses();
    return judge(course_, o_);
  }

 private:
  static constexpr double for_others = 5, for_mpirun = 2.5;  // seconds

  // How long something has been so: nothing, if it is not.
  struct Since {
    double operator()(bool holds) {
      if (!holds) start = {};
      if (holds && !start) start = now();
      return start ? now() - *start : 0;
    }
    std::optional<double> start = {};
  };

  bool mpirun_ended() {
    int status = 0;
    if (waitpid(mpirun_, &status, WNOHANG | WUNTRACED | WCONTINUED) != mpirun_) return false;
    stopped_ = WIFSTOPPED(status);
    course_.mpirun = status;
    return WIFEXITED(status) || WIFSIGNALED(status);
  }

  // A request to end after the step; when there is no step to end after, or for the second time, at once.
  void obey(int signal) {
    course_.signals.push_back(signal);
    if (course_.signals.size() > 1 || crew_.begun() < o_.ranks)
      end_all();
    else
      crew_.tell(Command::stop);
  }

  void look_at_ranks() {
    const int begun = crew_.begun();
    if (begun != begun_) late_.start = {};
    begun_ = begun;
    if (late_(begun < o_.ranks && !ending_) > o_.start_timeout) {
      course_.too_late = true;
      end_all();
    }
    if (failed_(crew_.failed() && crew_.present() > 0) > for_others) end_all();
    if (failed_(crew_.failed() && crew_.present() > 0) > 2 * for_others) crew_.kill();
  }

  void look_at_mpirun() {
    const bool nobody = begun_ == o_.ranks && crew_.present() == 0;
    const double alone = alone_(nobody || ending_);
    if (alone > 2 * for_mpirun)
      signal_mpirun(SIGKILL);
    else if (alone > for_mpirun)
      signal_mpirun(SIGTERM);
    if (still_(stopped_) > for_others) ::kill(mpirun_, SIGCONT);  // its ranks would wait for it at their end
  }

  void end_all() {
    crew_.tell(Command::end);
    if (!ending_) signal_mpirun(SIGTERM);
    ending_ = true;
  }
  void signal_mpirun(int signal) {
    course_.killed_mpirun = true;
    ::kill(mpirun_, signal);
  }

  const LaunchOptions& o_;
  const Signals signals_;
  Crew crew_;
  Course course_;
  pid_t mpirun_;
  int begun_ = 0;
  bool ending_ = false, stopped_ = false;
  Since late_, failed_, alone_, still_;
};

}  // namespace

fs::path log_of(const fs::path& logs, int rank) { return logs / fmt::format("rank-{}.log", rank); }

LaunchResult launch(const LaunchOptions& o) {
  if (o.ranks > 1) find_mpirun(o.mpirun);  // before a directory is left behind
  const LogDirectory directory(o.logs);
  return Supervision(o).run();
}

}  // namespace stretto
