#include "stretto/launch/launch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "stretto/base/clock.h"
#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/launch/inner/mpirun.h"
#include "stretto/launch/inner/rank.h"
#include "stretto/launch/inner/scratch.h"
#include "stretto/launch/inner/system.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

// While we answer for others: requests to end us, and that one of them has ended, are read one by one. Nobody reading
// the console is no reason to end: logs are still written.
class Signals {
 public:
  Signals() : unread_(signal(SIGPIPE, SIG_IGN)) {
    sigset_t heard;
    sigemptyset(&heard);
    for (const int s : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&heard, s);
    sigprocmask(SIG_BLOCK, &heard, &before_);
    fd_ = Fd(signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  ~Signals() {
    while (next()) continue;
    sigprocmask(SIG_SETMASK, &before_, nullptr);
    signal(SIGPIPE, unread_);
  }
  Signals(const Signals&) = delete;
  int fd() const { return fd_.get(); }
  std::optional<int> next() const {  // that asks us to end
    signalfd_siginfo info{};
    while (read(fd_.get(), &info, sizeof info) == sizeof info)
      if (info.ssi_signo != SIGCHLD) return int(info.ssi_signo);
    return {};
  }

 private:
  sighandler_t unread_;
  sigset_t before_{};
  Fd fd_;
};

// Logs are of one launch at a time. The system forgets the lock with the process.
class LogDirectory {
 public:
  explicit LogDirectory(const fs::path& path) {
    std::error_code wrong;
    make_folders(path, wrong);
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

// As many as the system lets a process have: a rank takes four. Its own limit is that of the place that it gets.
void open_many_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// mpirun ends all ranks when one has failed, and itself after the last. Not always: when one dies while MPI starts,
// Open MPI's may wait for ever, and with too few descriptors it waits before it has started any.
class Supervision {
 public:
  Supervision(const LaunchOptions& o, Screens& screens)
      : o_(o),
        screens_(screens),
        scratch_(places_.name()),
        mpirun_(start_mpirun(o, places_.name(), scratch_.path())),
        ranks_(o.ranks) {
    open_many_files();
  }

  ~Supervision() {  // nobody outlives us, not even when there is no memory to go on with
    end_ranks();
    if (!mpirun_ended_ && ::kill(-mpirun_, SIGKILL) == 0) wait_for(mpirun_);
  }
  Supervision(const Supervision&) = delete;

  LaunchResult run() {
    while (!over()) {
      listen();
      while (const auto signal = signals_.next()) obey(*signal);
      for (Rank& r : ranks_) r.look();
      look_at_mpirun();
      look_at_all();
    }
    if (broken_) std::rethrow_exception(broken_);
    for (const Rank& r : ranks_) course_.ranks.push_back(r.course());
    LaunchResult result = judge(course_, o_);
    if (const std::string full = result.code != 0 ? Scratch::full() : ""; !full.empty()) result.message += "\n" + full;
    return result;
  }

 private:
  static constexpr double for_others = 5, for_mpirun = 2.5, for_killed = 2;  // seconds

  // How long something has been so: nothing, if it is not.
  struct Since {
    double operator()(bool holds) {
      if (!holds) start = {};
      if (holds && !start) start = now();
      return start ? now() - *start : 0;
    }
    std::optional<double> start = {};
  };

  template <class Is>
  int count(Is is) const {
    return int(std::count_if(ranks_.begin(), ranks_.end(), [&](const Rank& r) { return (r.*is)(); }));
  }
  int begun() const { return count(&Rank::begun); }
  int running() const { return count(&Rank::running); }

  // A process that does not end when it is killed hangs in the system.
  bool over() { return mpirun_ended_ && (running() == 0 || killed_(true) > for_killed); }

  void listen() {
    Poll poll;
    poll.to_read(signals_.fd(), [] {});
    poll.to_read(places_.fd(), [this] { let_in(); });
    for (Rank& r : ranks_) r.listen(poll);
    for (Screen* c : {&screens_.out, &screens_.error}) poll.to_write(c->fd(), [c] { c->write_some(); });
    poll.wait(0.1);
  }

  void let_in() {
    std::optional<Place> place = mpirun_ended_ || ending_ ? std::nullopt : places_.next(mpirun_);
    if (!place || place->rank < 0 || place->rank >= o_.ranks || ranks_[place->rank].begun()) return;
    Rank& r = ranks_[place->rank];
    try {
      r.begin(std::move(*place), o_, screens_);
    } catch (...) {  // the others do not outlive us
      broken_ = std::current_exception();
      end_all();
    }
  }

  void look_at_mpirun() {
    int status = 0;
    if (!mpirun_ended_ && waitpid(mpirun_, &status, WNOHANG | WUNTRACED | WCONTINUED) == mpirun_) {
      stopped_ = WIFSTOPPED(status);
      course_.mpirun = status;
      mpirun_ended_ = WIFEXITED(status) || WIFSIGNALED(status);
    }
    if (mpirun_ended_) return end_ranks();
    const double alone = alone_(ending_ || (begun() == o_.ranks && running() == 0));
    if (alone > 2 * for_mpirun)
      signal_mpirun(SIGKILL);
    else if (alone > for_mpirun)
      signal_mpirun(SIGTERM);
    if (still_(stopped_) > for_others) ::kill(mpirun_, SIGCONT);  // its ranks would wait for it at their end
  }

  // A request to end after the step; when there is no step to end after, or for the second time, at once.
  void obey(int signal) {
    course_.signals.push_back(signal);
    if (course_.signals.size() > 1 || begun() < o_.ranks) return end_all();
    for (const Rank& r : ranks_) r.stop();
  }

  void look_at_all() {
    if (begun() != begun_) late_.start = {};
    begun_ = begun();
    if (late_(begun_ < o_.ranks && !ending_) > o_.start_timeout) {
      course_.too_late = true;
      end_all();
    }
    if (failed_(count(&Rank::failed) > 0 && running() > 0) > for_others) end_all();
  }

  void end_ranks() {
    for (Rank& r : ranks_) r.end();
  }
  void end_all() {
    end_ranks();
    if (!ending_) signal_mpirun(SIGTERM);
    ending_ = true;
  }
  void signal_mpirun(int signal) {
    course_.killed_mpirun = true;
    if (!mpirun_ended_) ::kill(mpirun_, signal);
  }

  const LaunchOptions& o_;
  Screens& screens_;
  const Signals signals_;
  const Places places_;
  const Scratch scratch_;
  Course course_;
  pid_t mpirun_;
  std::vector<Rank> ranks_;
  std::exception_ptr broken_;  // why a rank could not be begun
  int begun_ = 0;
  bool mpirun_ended_ = false, ending_ = false, stopped_ = false;
  Since late_, failed_, alone_, still_, killed_;
};

}  // namespace

fs::path log_of(const fs::path& logs, int rank) { return logs / fmt::format("rank-{}.log", rank); }

LaunchResult launch(const LaunchOptions& o) {
  if (o.ranks > 1) find_mpirun(o.mpirun);  // before a directory is left behind
  const LogDirectory directory(o.logs);
  Screens screens;
  LaunchResult result = Supervision(o, screens).run();
  for (Screen* screen : {&screens.out, &screens.error}) {
    screen->write_rest();  // a signal ends us again meanwhile
    if (result.code == 0 && screen->lost())
      throw Error("output", "the console cannot be written to: {}", screen->lost().message())
          .hint("is the disk full? the logs are in {}", o.logs.string())
          .as(Error::Kind::run);
  }
  return result;
}

}  // namespace stretto
