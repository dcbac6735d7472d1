// What a user may give as a schedule, and the one way it becomes a Schedule:
//
//   Schedule s = choose_schedule("zb-h1", {.actors = 4, .microbatches = 8});
//   Schedule t = choose_schedule("mine.csv", {.actors = 0, .microbatches = 0});   // 0: what the file says
//   CheckedSchedule c = check_schedule("mine.csv", {.actors = 4, .microbatches = 8});
//   refuse(c.validation.all_faults());
#pragma once
#include <concepts>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "stretto/schedule/csv.h"
#include "stretto/schedule/schedule.h"
#include "stretto/schedule/validate.h"

namespace stretto {

// The name of a builder or of a user's own, a file in PyTorch's notation, a schedule, or a function that makes one.
class ScheduleChoice {
 public:
  ScheduleChoice(const char* name_or_file) : choice_(std::string(name_or_file)) {}
  ScheduleChoice(std::string name_or_file) : choice_(std::move(name_or_file)) {}
  ScheduleChoice(Schedule s) : choice_(std::move(s)) {}
  template <std::invocable<const Request&> Make>
  ScheduleChoice(Make make) : choice_(std::function<Schedule(const Request&)>(std::move(make))) {}

  const auto& get() const { return choice_; }

 private:
  std::variant<std::string, Schedule, std::function<Schedule(const Request&)>> choice_;
};

struct ChoiceOptions {
  CsvDialect dialect = CsvDialect::now;
  CsvPipes pipes = CsvPipes::detect;
};

struct CheckedSchedule {
  Schedule schedule;
  Validation validation;  // of communication cells and of what was asked for, too
};

// Whether a choice by text means a file: it ends in .csv or has a slash, or no schedule has the name and such a file
// exists.
bool names_a_file(std::string_view name_or_file);

// Throws when there is no such schedule, the builder refuses the request, the file cannot be read or its cells are
// none. The schedule itself is not validated. A builder needs actors and microbatches.
Schedule choose_schedule(const ScheduleChoice&, const Request&, const ChoiceOptions& = {});

// Also finds everything that is wrong with the schedule or differs from the request: actors, chunks, microbatches, and
// memory as a cap for every schedule. Faults in a file name line and column.
CheckedSchedule check_schedule(const ScheduleChoice&, const Request&, const ChoiceOptions& = {});

}  // namespace stretto
