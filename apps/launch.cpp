// `stretto launch`: a command as several local processes, without having to know MPI.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "commands.h"
#include "run_file.h"
#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/text.h"
#include "stretto/checkpoint/checkpoint.h"
#include "stretto/comm/world.h"
#include "stretto/config/run.h"
#include "stretto/launch/launch.h"
#include "stretto/run/loop.h"
#include "stretto/run/outcome.h"
#include "stretto/saved/resume.h"
#include "usage.h"

namespace stretto::app {
namespace {

namespace fs = std::filesystem;

struct Wishes {
  LaunchOptions launch;
  std::string logs, as_rank;
  int restarts = 0;
  bool elastic = false, everybody = false;
};

std::string own_path() { return fs::read_symlink("/proc/self/exe").string(); }

// A run as its words on the command line say: file and settings.
struct Words {
  std::vector<std::string> all;
  bool is_setting(const std::string& w) const { return w.starts_with("--") && w.find('.') < w.find('='); }
  // What --resume says: "" without a directory.
  std::optional<std::string> resumed() const {
    const std::string word = "--resume";
    std::optional<std::string> last;
    for (const std::string& w : all)
      if (w == word || w.starts_with(word + "=")) last = w.substr(std::min(w.size(), word.size() + 1));
    return last;
  }
  RunConfig config(std::vector<std::string> more = {}) const {
    std::string file;
    std::vector<std::string> settings;
    for (std::size_t i = all[0] == "bench" ? 2 : 1; i < all.size(); ++i) {
      if (is_setting(all[i]))
        settings.push_back(all[i]);
      else if (!all[i].starts_with('-') && file.empty())
        file = all[i];
    }
    if (const auto from = resumed(); from && file.empty()) file = config_of_run(*from, settings);
    settings.insert(settings.end(), more.begin(), more.end());
    return read_run(file, settings);
  }
};

// As many as the run's mesh has.
int ranks_of(const Words& words) {
  const bool has_mesh = words.all[0] == "train" || (words.all.size() > 1 && words.all[0] == "bench");
  return has_mesh ? mesh_of(words.config().parallel).ranks() : 1;
}

// The largest mesh below `ranks` ranks that the run can have with a shorter pipeline or fewer data ranks.
std::optional<std::vector<std::string>> smaller(const Words& words, int ranks) {
  const Mesh mesh = compile_run(words.config()).parallel.mesh;
  const int pipe = mesh.extent("pipe"), data = mesh.extent("data"), others = mesh.ranks() / (pipe * data);
  std::vector<std::pair<int, int>> candidates;
  for (int p = 1; p <= pipe; ++p)
    for (int d = 1; d <= data; ++d)
      if (p * d * others < ranks) candidates.push_back({p, d});
  std::stable_sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first * a.second, a.first) > std::pair(b.first * b.second, b.first);
  });
  for (const auto& [p, d] : candidates) {
    std::vector<std::string> settings{fmt::format("--parallel.pipe={}", p)};
    if (data > 1) settings.push_back(fmt::format("--parallel.data={}", d));
    try {
      check_run(words.config(settings));
      return settings;
    } catch (const Error&) {
    }
  }
  return {};
}

void say(const std::string& line) {
  std::fflush(stdout);
  std::fprintf(stderr, "[launch] %s\n", line.c_str());
}

// Where a run can be started again: its words say so afterwards.
std::string lasting_directory(Words& words, const fs::path& logs) {
  const std::string from = words.resumed().value_or("");
  if (!from.empty() && is_checkpoint(from))
    throw Error("launch", "a run that begins at the checkpoint '{}' would begin there again at every restart", from)
        .hint("give --resume the run's directory, or leave --restarts out")
        .as(Error::Kind::usage);
  if (!from.empty()) return from;
  if (const std::string directory = words.config().log.dir; !directory.empty()) return directory;
  const std::string directory = (logs / "run").string();
  words.all.push_back("--log.dir=" + directory);
  return directory;
}

// What the user does after a run whose ranks could not say it themselves: they were killed.
std::string what_next(const Words& words, const LaunchOptions& o) {
  if (words.all[0] != "train") return "";
  try {
    std::string directory = words.resumed().value_or("");
    if (directory.empty() || is_checkpoint(directory)) directory = words.config().log.dir;
    if (directory.empty())
      return fmt::format("{} names the run's directory DIR; to go on: stretto launch -n {} -- train --resume=DIR",
                         log_of(o.logs, 0).string(), o.ranks);
    return is_folder(directory) ? advice_after({.directory = directory, .ranks = o.ranks}) : "";
  } catch (const Error&) {  // what it was is said; where it was cannot be read any more
    return "";
  }
}

// Notices that a run has failed where it failed before: starting it once more would not help.
class SamePlace {
 public:
  explicit SamePlace(std::string directory) : directory_(std::move(directory)) {}
  void begin() { noted_ = when_noted(); }
  // The place in words, when that of the start before it was the same.
  std::optional<std::string> failed(int ranks) {
    const Place place{when_noted() == noted_ ? std::nullopt : last_step_in(directory_), ranks};
    const bool same = std::exchange(failed_, place) == place;
    if (!same) return {};
    return place.step ? fmt::format("after step {}", *place.step) : "before its first step";
  }

 private:
  struct Place {
    std::optional<i64> step;  // the last one that this start has come to
    int ranks = 0;
    bool operator==(const Place&) const = default;
  };
  std::optional<fs::file_time_type> when_noted() const {
    std::error_code absent;
    const auto when = fs::last_write_time(fs::path(directory_) / "metrics.jsonl", absent);
    return absent ? std::nullopt : std::optional(when);
  }
  std::string directory_;
  std::optional<fs::file_time_type> noted_;
  std::optional<Place> failed_;
};

// A run that is started again where its newest checkpoint is, or from the beginning when it has none yet.
LaunchResult persevere(Wishes w) {
  Words words{w.launch.arguments};
  const bool can = words.all[0] == "train";
  if (w.restarts > 0 && !can)
    throw Error("launch", "'{}' cannot be started again where it was", words.all[0]).hint("--restarts is for train");
  const std::string directory = w.restarts > 0 ? lasting_directory(words, w.launch.logs) : "";
  SamePlace same_place(directory);
  for (int attempt = 1;; ++attempt) {
    w.launch.arguments = words.all;
    same_place.begin();
    const LaunchResult r = launch(w.launch);
    const bool wrong_input = r.code == int(Error::Kind::input) || r.code == int(Error::Kind::usage);
    if (r.code != 0) say(r.message);
    bool ends = r.code == 0 || r.stopped || wrong_input || attempt > w.restarts;
    if (const auto place = ends ? std::nullopt : same_place.failed(w.launch.ranks)) {
      say(fmt::format("the run has failed {} twice, and would again: it is not restarted", *place));
      ends = true;
    }
    if (ends) {
      const bool silent = r.code != 0 && !r.stopped && !r.explained;
      if (const std::string next = silent ? what_next(words, w.launch) : ""; !next.empty()) say(next);
      return r;
    }
    if (!words.resumed()) words.all.push_back("--resume");
    if (w.elastic)
      if (const auto settings = smaller(words, w.launch.ranks)) {
        words.all.insert(words.all.end(), settings->begin(), settings->end());
        w.launch.ranks = compile_run(words.config()).program->ranks();
      }
    say(fmt::format("restart {} of {}, with {} ranks, in {}", attempt, w.restarts, w.launch.ranks, directory));
  }
}

fs::path default_logs() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[32];
  const std::string when(text, std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &local));
  return fs::path("runs") / fmt::format("launch-{}-{}", when, getpid());
}

}  // namespace

void add_launch(CLI::App& app) {
  CLI::App* command = app.add_subcommand("launch", "start a command as several local processes, one rank each");
  auto w = std::make_shared<Wishes>();
  command->add_option("-n,--ranks", w->launch.ranks, "how many processes; by default the ranks of the run's mesh")
      ->check(whole_number(1, 4096));
  command->add_option("--logs", w->logs, "directory for rank-<n>.log; by default runs/launch-<date and time>");
  command->add_option("--console", w->everybody, "whose output is shown: first or all, with the rank in front")
      ->type_name("first|all")
      ->transform(CLI::Transformer(std::map<std::string, std::string>{{"first", "0"}, {"all", "1"}}).description(""))
      ->transform(one_of({"first", "all"}));
  command->add_option("--mpirun", w->launch.mpirun, "by default the one of the MPI that Stretto was built with");
  command->add_option("--restarts", w->restarts, "how often a run that fails goes on from its newest checkpoint")
      ->check(whole_number(0, 1000000));
  command->add_flag("--elastic", w->elastic, "go on with fewer ranks, in a smaller mesh");
  command
      ->add_option("--start-timeout", w->launch.start_timeout,
                   "seconds for mpirun to start the next process; by default 60")
      ->check(whole_number(1, 1000000));
  command->add_option("--as-rank", w->as_rank)->group("");  // what mpirun starts
  command->add_option("COMMAND", w->launch.arguments,
                      "what every process does: a command of stretto, with its options");
  command->footer("Example: stretto launch train run.toml --parallel.pipe=4");
  command->callback([w, command] {
    if (command->count("--as-rank") > 0) std::exit(hold_place(w->as_rank, find_world(environment()).rank));
    LaunchOptions& o = w->launch;
    o.program = own_path();
    // As after mpirun.
    if (o.arguments.size() > 1 && fs::path(o.arguments[0]).filename() == "stretto")
      o.arguments.erase(o.arguments.begin());
    if (o.arguments.empty() || o.arguments[0].starts_with('-'))
      throw Error("launch", "{}",
                  o.arguments.empty() ? "no command is given" : "'" + o.arguments[0] + "' is no command")
          .hint("stretto launch -n 4 train run.toml")
          .as(Error::Kind::usage);
    o.console = w->everybody ? ConsoleRanks::all : ConsoleRanks::first;
    if (command->count("--ranks") == 0) o.ranks = ranks_of({o.arguments});
    o.logs = fs::absolute(w->logs.empty() ? default_logs() : fs::path(w->logs));
    const LaunchResult r = persevere(*w);
    if (r.code != 0) std::exit(r.code);
  });
}

}  // namespace stretto::app
