// Starts a command as several local ranks under mpirun, and answers for all of them.
//
//   LaunchResult r = launch({.ranks = 4, .program = "build/stretto", .arguments = {"train", "run.toml"}});
//   return r.code;
//
// mpirun starts a process of ours in every rank's place (place.h), and the launch itself starts the rank there. As its
// parent it writes the rank's log, shows what belongs on the console, hears from the system how it ended, and takes it
// along when it dies. So it is known who failed first and why, whatever the MPI, and nobody is left behind.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace stretto {

enum class ConsoleRanks { first, all };  // whose output is shown; all: with the rank in front

struct LaunchOptions {
  int ranks = 1;
  std::string program;                 // this executable: it understands `launch --as-rank NAME`
  std::vector<std::string> arguments;  // of every rank
  std::string mpirun = "";             // "": the one of the MPI that Stretto was built with, else the one in PATH
  std::filesystem::path logs =
      {};  // rank-<n>.log; made with its parents if it does not exist; for one launch at a time
  ConsoleRanks console = ConsoleRanks::first;
  double start_timeout = 60;  // seconds for mpirun to start the next rank
};

struct LaunchResult {
  // What the first rank that failed said; 128 + signal when it, or the launch, was ended by one; else 3.
  int code = 0;
  std::optional<int> rank = {};  // which one that was; none: no rank, or nobody knows
  bool stopped = false;          // by a signal to us, which the ranks got
  bool explained = false;        // the rank itself says why it failed, and what to do
  std::string message = "";      // "rank 3 was killed by signal 9 (Killed); its log is runs/launch/rank-3.log"
};

// Returns when all ranks have ended. SIGINT and SIGTERM are passed on as a request to end after the step; the second
// one ends all at once, and so does the first while ranks are still being started.
LaunchResult launch(const LaunchOptions&);

// What mpirun starts in a rank's place: ends as the rank does, and at once when the launch or mpirun is gone. An Error
// when there is no such launch.
int hold_place(const std::string& launch, int rank);

std::filesystem::path log_of(const std::filesystem::path& logs, int rank);

}  // namespace stretto
