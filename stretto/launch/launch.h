// Starts a command as several local ranks under mpirun, and answers for all of them.
//
//   LaunchResult r = launch({.ranks = 4, .program = "build/stretto", .arguments = {"train", "run.toml"}});
//   return r.code;
//
// Between mpirun and every rank stands a process of ours (be_rank): it keeps the rank's log, passes on what belongs on
// the console, notes how the rank ended, and takes it along when it dies itself. So it is known who failed first and
// why, whatever the MPI, and nobody is left behind.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace stretto {

enum class ConsoleRanks { first, all };  // whose output is shown; of all of them with the rank in front

struct LaunchOptions {
  int ranks = 1;
  std::string program;                 // this executable: it understands `launch --as-rank DIR -- ...`
  std::vector<std::string> arguments;  // of every rank
  std::string mpirun;                  // "": the one of the MPI that Stretto was built with, else the one in PATH
  std::filesystem::path logs;          // rank-<n>.log; made, with what is needed in between
  ConsoleRanks console = ConsoleRanks::first;
};

struct LaunchResult {
  int code = 0;          // of the first rank that failed; 128 + signal when it was killed
  int rank = -1;         // which one that was; -1: none, or nobody knows
  bool stopped = false;  // by a signal to us, which the ranks got
  std::string message;   // "rank 3 was killed by signal 9 (Killed); its log is runs/launch/rank-3.log"
};

// Returns when all ranks have ended. SIGINT and SIGTERM are passed on as a request to end after the step; the second
// one ends all at once.
LaunchResult launch(const LaunchOptions&);

// What stands between mpirun and a rank: runs the rank and returns its exit code.
int be_rank(const std::filesystem::path& logs, ConsoleRanks, int rank, const std::string& program,
            const std::vector<std::string>& arguments);

}  // namespace stretto
