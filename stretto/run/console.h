// What a run says while it trains: a few lines about it, one row per log
// interval, and on a terminal a bar with the time left that is drawn again and
// again below them.
//
//   Console console(stdout);
//   console.say("model    gpt2, 4 layers");
//   console.row({.step = 10, .loss = 3.2, ...});
//   console.progress(12, 300, 61.5);
//   console.close();
#pragma once
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "stretto/base/id.h"

namespace stretto {

struct ConsoleRow {
  i64 step = 0;
  double loss = 0, grad_norm = 0, lr = 0, tokens_per_second = 0;
  u64 memory = 0;  // bytes
  double mfu = 0;  // share of the machine's peak that the model's operations make up
  std::optional<double> validation = {};
  // Absent: the column is.
  std::optional<double> bubble = {};     // idle share of the actors' time
  std::optional<double> imbalance = {};  // of experts: the largest load over the mean
  std::optional<double> dropped = {};    // share of their choices
};
std::string row_header(const ConsoleRow& = {});  // of rows with the columns of this one
std::string row_text(const ConsoleRow&);
// "5 s", "2m05s": what remains is not known to the millisecond.
std::string remaining(double seconds);
// "[=====>    ]  50%  step 150/300  2m05s left" in at most `width` columns.
std::string bar_text(i64 step, i64 steps, double seconds_left, int width);

enum class Verbosity : std::uint8_t {
  quiet,  // nothing but what `result` says
  normal,
  verbose,  // a row for every step, and details
};

class Console {
 public:
  explicit Console(std::FILE* out, Verbosity = Verbosity::normal);
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  // From now on everything is written to this file too, and what has been said so far; even when quiet.
  void log_to(const std::filesystem::path& file);
  void say(std::string_view line);
  void detail(std::string_view line);  // when verbose
  void result(std::string_view line);  // even when quiet
  void log(std::string_view line);     // to the file only
  bool verbose() const { return verbosity_ == Verbosity::verbose; }
  void row(const ConsoleRow&);
  void progress(i64 step, i64 steps,
                double seconds_left);  // drawn at most ten times a second
  void close();                        // takes the bar away; what follows are lines again

 private:
  void clear();
  void print(std::string_view line);

  std::FILE* out_;
  std::FILE* log_ = nullptr;
  bool logs_ = true;    // false: there is no file, and there will be none
  std::string before_;  // what was said before there was a file
  Verbosity verbosity_;
  bool terminal_;
  bool headed_ = false;  // the header of the rows has been printed
  bool drawn_ = false;   // a bar stands on the last line
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace stretto
