// The options by which commands are told about schedules, and what they mean:
//
//   ScheduleOptions o;
//   o.declare(command);                          // --schedule --actors --microbatches --chunks ... --times
//   for (const Prediction& p : o.predictions()) fmt::print("{}\n", p.makespan);
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "commands.h"
#include "stretto/schedule/choice.h"
#include "stretto/simulate/simulate.h"

namespace stretto::app {

struct ScheduleOptions {
  std::vector<std::string> schedules;               // names or CSV files
  Request request{.actors = 0, .microbatches = 0};  // 0: a file's own
  std::string times;                                // "F=1,I=1,W=1,comm=0.1"
  ChoiceOptions choice;                             // how CSV files are read
  bool contention = false;                          // one message at a time per link
  bool messages = false;                            // timelines show them

  void declare(CLI::App& command);

  // The schedule by name or from a file, found valid; else an Error with all faults.
  Schedule checked(const std::string& name) const;
  // What it will do; the timeline has the schedule's name as its title.
  Prediction predicted(const Schedule&) const;
};

// --actors --microbatches --chunks --segments --memory: what a schedule is made for.
void declare_request(CLI::App& command, Request&);
// --for: whose runtime it is for; only torch's reads schedules.
void declare_reader(CLI::App& command, std::string& reader);
// --dialect and --pipes: how CSV files are to be read.
void declare_file_options(CLI::App& command, ChoiceOptions&);

// "F=1,I=1,W=0.5,comm=0.1" over what is there; R gives recompute a time and makes it implied.
void read_times(std::string_view text, Times& times, std::optional<double>& recompute);

}  // namespace stretto::app
