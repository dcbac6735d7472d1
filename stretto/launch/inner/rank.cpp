#include "stretto/launch/inner/rank.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <utility>

#include "stretto/base/clock.h"
#include "stretto/base/error.h"
#include "stretto/base/fd.h"

namespace stretto {
namespace {

// How mpirun takes a rank's end: it kills the holders of the others, and maybe of that one before we have heard of it.
constexpr double for_own_end = 0.1;  // seconds

struct Streams {
  Pipe out, error, word;
};

// The number under which a rank looks for its wire; without one that of the last standard stream.
int wire_number(const std::vector<std::string>& environment) {
  constexpr std::string_view variable = "PMI_FD=";
  for (const std::string& v : environment)
    if (v.starts_with(variable)) return std::atoi(v.c_str() + variable.size());
  return 2;
}

[[noreturn]] void become_rank(const Place& place, const LaunchOptions& o, pid_t parent, const Streams& streams,
                              std::vector<std::string> environment) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it died before that
  setpgid(0, 0);                        // a terminal's Ctrl-C is the launch's
  const int wire = wire_number(environment);
  const int word = fcntl(streams.word.in.get(), F_DUPFD, wire + 1);
  environment.push_back(std::string(last_word_variable) + "=" + std::to_string(word));
  std::vector<FdMove> moves{{place.input.get(), 0}, {streams.out.in.get(), 1}, {streams.error.in.get(), 2}};
  if (place.wire) moves.push_back({place.wire->get(), wire});
  if (!move_fds(moves)) _exit(127);
  adopt_limits(place);
  std::vector<std::string> command{o.program};
  command.insert(command.end(), o.arguments.begin(), o.arguments.end());
  execute(std::move(command), std::move(environment));
}

}  // namespace

void Rank::begin(Place place, const LaunchOptions& o, Screens& screens) {
  place_ = std::move(place);
  log_ = open_log(log_of(o.logs, place_.rank), O_APPEND);
  Streams streams;
  std::vector<std::string> environment = environment_of(place_);
  const pid_t own = getpid();
  process_ = start_process([&] { become_rank(place_, o, own, streams, std::move(environment)); });
  setpgid(process_, process_);
  place_.input.close();
  place_.wire.reset();
  const bool all = o.console == ConsoleRanks::all;
  const std::string prefix = all ? fmt::format("[{}] ", place_.rank) : "";
  out_ = Stream(std::move(streams.out.out), all || place_.rank == 0 ? &screens.out : nullptr, prefix, log_);
  error_ = Stream(std::move(streams.error.out), all ? &screens.error : nullptr, prefix, log_);
  word_ = std::move(streams.word.out);
  course_.begun = true;
}

void Rank::listen(Poll& poll) {
  if (!running()) return;
  poll.to_read(out_.fd(), [this] { out_.read_some(); });
  poll.to_read(error_.fd(), [this] { error_.read_some(); });
  if (word_)
    poll.to_read(word_.get(), [this] {
      if (!read_into(heard_, word_.get())) word_.close();
    });
  if (!lost_) poll.to_read(place_.line.get(), [this] { lost_ = now(); });
}

void Rank::look() {
  if (!running()) return;
  int status = 0;
  if (waitpid(process_, &status, WNOHANG) == process_)
    note_end(status);
  else if (lost_ && now() > *lost_ + for_own_end)
    end();
}

void Rank::note_end(int status) {
  for (Stream* s : {&out_, &error_}) s->read_rest();
  if (word_) fcntl(word_.get(), F_SETFL, O_NONBLOCK);
  while (word_ && read_into(heard_, word_.get())) continue;
  course_.said = last_word_of(heard_);
  const bool told = told_ && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  course_.end = RankEnd{.status = status, .time = now(), .told = told, .last_line = error_.last_line()};
  leave(place_, code_of(status));
}

void Rank::stop() const {
  if (running()) ::kill(process_, SIGTERM);
}
void Rank::end() {
  if (!running()) return;
  told_ = true;
  ::kill(-process_, SIGKILL);  // with what it has started
}

}  // namespace stretto
