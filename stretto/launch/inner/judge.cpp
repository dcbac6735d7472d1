#include "stretto/launch/inner/judge.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <tuple>

#include "stretto/base/error.h"
#include "stretto/base/text.h"
#include "stretto/launch/inner/mpirun.h"

namespace stretto {
namespace {

constexpr int failed_code = int(Error::Kind::run);
constexpr std::size_t most_lines = 10;  // of what mpirun said

std::string signal_name(int signal) { return fmt::format("signal {} ({})", signal, strsignal(signal)); }

bool ended_well(const RankCourse& r) { return r.end && r.end->status == 0; }
bool killed(const RankCourse& r) { return r.end && WIFSIGNALED(r.end->status); }
bool killed_by(const RankCourse& r, int signal) { return killed(r) && WTERMSIG(r.end->status) == signal; }
// By itself: not because others had failed before.
bool failed(const RankCourse& r) {
  if (!r.end) return r.begun;
  return r.end->status != 0 && (r.said || !r.end->told);
}

// Ranks that say why, or were killed, come before those that MPI ended with them. Of two that we have heard of at the
// same time the one that was killed is first: the other may speak about that.
std::optional<int> first_to_fail(const std::vector<RankCourse>& ranks) {
  const auto order = [](const RankCourse& r) {
    return std::tuple(!r.said && !killed(r), r.end ? r.end->time : std::numeric_limits<double>::infinity(), !killed(r));
  };
  std::optional<int> first;
  for (int i = 0; i < int(ranks.size()); ++i)
    if (failed(ranks[i]) && (!first || order(ranks[i]) < order(ranks[*first]))) first = i;
  return first;
}

LaunchResult failure_of_rank(const RankCourse& r, int rank, const std::string& log) {
  LaunchResult result{.code = failed_code, .rank = rank};
  std::string how, why;
  if (r.said) {
    result.code = r.said->code;
    result.explained = true;
    how = fmt::format("ended with code {}", result.code);
    why = r.said->why;
  } else if (!r.end) {
    how = "was killed and does not end: the system holds it";
  } else if (killed(r)) {
    result.code = 128 + WTERMSIG(r.end->status);
    how = "was killed by " + signal_name(WTERMSIG(r.end->status));
  } else {
    how = fmt::format("ended with code {} and did not say why", WEXITSTATUS(r.end->status));
    why = r.end->last_line;
  }
  result.message = fmt::format("rank {} {}; its log is {}{}{}", rank, how, log, why.empty() ? "" : "\n", why);
  return result;
}

// What comes later is what mpirun says about its own end.
std::string beginning_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; lines.size() < most_lines && std::getline(file, line);)
    if (line.find_first_not_of("- ") != std::string::npos) lines.push_back(line);
  return join(lines, "\n");
}

LaunchResult failure_of_mpirun(const Course& c, const LaunchOptions& o) {
  const auto begun = std::count_if(c.ranks.begin(), c.ranks.end(), [](const RankCourse& r) { return r.begun; });
  const std::string who = o.ranks > 1 ? "mpirun" : "the process that starts the rank";
  std::string what;
  if (c.too_late)
    what = fmt::format(
        "{} has started {} of {} ranks, and in {:g} s no other; hint: are processes or open files "
        "limited (ulimit -u, ulimit -n)? --start-timeout=SECONDS waits longer",
        who, begun, o.ranks, o.start_timeout);
  else if (c.killed_mpirun && begun == o.ranks)
    what =
        "the processes with which mpirun had started the ranks have ended; hint: if nobody has killed them, the system "
        "may have been short of memory";
  else if (WIFSIGNALED(c.mpirun))
    what = who + " was killed by " + signal_name(WTERMSIG(c.mpirun));
  else if (begun < o.ranks)
    what =
        fmt::format("{} ended with code {} and had started {} of {} ranks", who, WEXITSTATUS(c.mpirun), begun, o.ranks);
  else
    what = fmt::format("{} ended with code {}, and no rank had failed before", who, WEXITSTATUS(c.mpirun));
  const bool quiet = o.ranks > 1 && o.console == ConsoleRanks::first;
  if (const std::string said = quiet ? beginning_of(mpirun_log(o.logs)) : ""; !said.empty())
    what += fmt::format("; {} says\n{}", mpirun_log(o.logs).string(), said);
  // MPI's library has something to say before mpirun ends everybody.
  for (int i = 0; i < int(c.ranks.size()); ++i)
    if (const auto& end = c.ranks[i].end; end && !end->last_line.empty()) {
      what += fmt::format("\nrank {} said at last: {}; its log is {}", i, end->last_line, log_of(o.logs, i).string());
      break;
    }
  return {.code = failed_code, .message = what};
}

// A rank that was asked to end may have had no step yet to end after: the signal that it got from us ends it.
bool ended_by_us(const Course& c) {
  if (c.signals.empty()) return false;
  const auto stopped = [](const RankCourse& r) { return killed_by(r, SIGTERM); };
  return c.signals.size() > 1 || std::any_of(c.ranks.begin(), c.ranks.end(), stopped) ||
         std::none_of(c.ranks.begin(), c.ranks.end(), [](const RankCourse& r) { return r.said && failed(r); });
}

}  // namespace

LaunchResult judge(const Course& c, const LaunchOptions& o) {
  LaunchResult result;
  const bool foreign_kill = WIFSIGNALED(c.mpirun) && !c.killed_mpirun;
  if (!std::all_of(c.ranks.begin(), c.ranks.end(), ended_well)) {
    const std::optional<int> first = first_to_fail(c.ranks);
    if (ended_by_us(c))
      result = {.code = 128 + c.signals[0], .message = "ended by " + signal_name(c.signals[0])};
    else if (first && !(foreign_kill && o.ranks > 1))  // else they have failed because of that
      result = failure_of_rank(c.ranks[*first], *first, log_of(o.logs, *first).string());
    else
      result = failure_of_mpirun(c, o);
  }
  result.stopped = !c.signals.empty();
  return result;
}

}  // namespace stretto
