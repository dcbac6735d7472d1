#include "schedule_options.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <map>

#include "stretto/base/error.h"
#include "stretto/schedule/validate.h"
#include "usage.h"

namespace stretto::app {
namespace {

constexpr double longest_action = 1e12;  // sums over all actions stay exact enough to draw

}  // namespace

void ScheduleOptions::declare(CLI::App& command) {
  command.add_option("--schedule", schedules, "a schedule's name, or a CSV file in PyTorch's notation")
      ->type_name("NAME|FILE")
      ->allow_extra_args(false);
  {
    const OptionGroup group(command, of_schedule);
    declare_request(command, request);
    command.add_flag("--descending", request.descending, "backward in descending order (gpipe, looped-bfs)");
    declare_file_options(command, choice);
  }
  const OptionGroup group(command, of_times);
  command.add_option("--times", times, "time of a full stage's phases and of a message, e.g. F=1,I=1,W=1,comm=0.1")
      ->type_name("F=..,I=..,W=..,R=..,comm=..");
  command.add_flag("--contention", contention, "one message at a time between two actors");
}

void declare_request(CLI::App& command, Request& request) {
  command.add_option("--actors", request.actors, "actors along the pipe; for a file: what it should have")
      ->type_name("P")
      ->check(whole_number(1));
  command.add_option("--microbatches", request.microbatches, "microbatches of a step")
      ->type_name("M")
      ->check(whole_number(1));
  command.add_option("--chunks", request.chunks, "stages per actor, for schedules that have a choice")
      ->type_name("V")
      ->check(whole_number(1));
  command.add_option("--segments", request.segments, "segments that sequences are cut into")
      ->type_name("K")
      ->check(whole_number(1));
  command.add_option("--memory", request.memory, "cap in full-stage activations per actor")
      ->type_name("A")
      ->check(number_above(0));
}

void declare_reader(CLI::App& command, std::string& reader) {
  command.add_option("--for", reader, "the runtime that is to read the schedule: torch")
      ->type_name("torch")
      ->transform(one_of({"torch"}));
}

void declare_file_options(CLI::App& command, ChoiceOptions& choice) {
  using Dialects = std::map<std::string, CsvDialect>;
  using Pipes = std::map<std::string, CsvPipes>;
  const Dialects dialects{{"now", CsvDialect::now}, {"old", CsvDialect::old}};
  const Pipes pipes{
      {"one", CsvPipes::one}, {"two", CsvPipes::two}, {"logical", CsvPipes::logical}, {"detect", CsvPipes::detect}};
  command.add_option("--dialect", choice.dialect, "of CSV files; old: B is the input gradient, BW the full backward")
      ->type_name("now|old")
      ->transform(CLI::CheckedTransformer(dialects).description(""))
      ->transform(one_of({"now", "old"}));
  command
      .add_option("--pipes", choice.pipes,
                  "of CSV files; two: stages S..2S-1 are the up pipe's; logical: microbatches from m/2 go up")
      ->type_name("one|two|logical|detect")
      ->transform(CLI::CheckedTransformer(pipes).description(""))
      ->transform(one_of({"one", "two", "logical", "detect"}));
}

void read_times(std::string_view text, Times& times, std::optional<double>& recompute) {
  const auto wrong = [&](std::string_view item, std::string_view why) {
    return Error("--times", "'{}' in '{}' {}", item, text, why).hint("write F=1,I=1,W=1,comm=0.1; R=1 for recompute");
  };
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    const std::size_t equals = item.find('=');
    if (equals == item.npos) throw wrong(item, "has no '='");
    const std::string_view key = item.substr(0, equals), number = item.substr(equals + 1);
    double value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc() || end != number.data() + number.size() || !(value >= 0 && value <= longest_action))
      throw wrong(item, "is not a time: a number from 0 to 1e12");
    if (key == "F")
      times.F = value;
    else if (key == "I")
      times.I = value;
    else if (key == "W")
      times.W = value;
    else if (key == "R")
      recompute = value;
    else if (key == "comm")
      times.message = value;
    else if (key == "B")
      throw wrong(item, "cannot be set: B is I and then W");
    else
      throw wrong(item, "is of no known kind");
  }
}

Schedule ScheduleOptions::checked(const std::string& name) const {
  Request wanted = request;
  std::optional<double> recompute;
  read_times(times, wanted.times, recompute);
  const CheckedSchedule c = check_schedule(name, wanted, choice);
  if (!c.validation.ok()) fmt::print(stderr, "{}", marked_rows(c.schedule, c.validation));
  refuse(c.validation.all_faults());
  return c.schedule;
}

Prediction ScheduleOptions::predicted(const Schedule& s) const {
  SimulateOptions o{.contention = contention, .messages = messages};
  read_times(times, o.times, o.recompute);
  Prediction p = simulate(s, o);
  p.timeline.title = s.name;
  return p;
}

}  // namespace stretto::app
