#include "stretto/schedule/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "stretto/schedule/builders.h"

namespace stretto {

namespace {

constexpr std::size_t largest_file = std::size_t{1} << 28;  // far above any schedule that can be built

std::string read_text(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw Error(path, "is a directory").hint("give a CSV file");
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    throw Error(path, "cannot be read: {}", std::strerror(errno ? errno : EIO))
        .hint("give a builder's name or a CSV file");
  }
  std::string text;
  std::string block(1 << 16, '\0');
  while (in.read(block.data(), std::streamsize(block.size())), in.gcount() > 0) {
    text.append(block, 0, in.gcount());
    if (text.size() > largest_file)
      throw Error(path, "is larger than {} bytes", largest_file).hint("this is no schedule");
  }
  return text;
}

bool is_known(std::string_view name) {
  const auto names = schedule_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

// An unknown name is for build_schedule to refuse.
void need_numbers(const std::string& name, const Request& r) {
  if ((r.actors > 0 && r.microbatches > 0) || !is_known(name)) return;
  throw Error("schedule", "'{}' is made for a number of actors and microbatches, given are {} and {}", name, r.actors,
              r.microbatches)
      .hint("give --actors and --microbatches")
      .as(Error::Kind::usage);
}

CsvOptions csv_options(const Request& r, const ChoiceOptions& o) {
  CsvOptions csv{.dialect = o.dialect, .pipes = o.pipes, .microbatches = std::max(0, r.microbatches)};
  const std::int64_t stages = std::int64_t{std::max(0, r.actors)} * std::max(0, r.chunks);
  csv.stages = std::min<std::int64_t>(stages, 1 << 17);
  return csv;
}

struct FromFile {
  CsvFile file;
  Schedule schedule;
};

// The rows of a file in the place of its name. Messages call them "schedule".
bool has_rows(std::string_view text) { return text.find('\n') != text.npos; }
std::string shown(std::string_view text) { return has_rows(text) ? "schedule" : std::string(text); }

FromFile read_schedule(const std::string& path, const Request& r, const ChoiceOptions& o) {
  const std::string place = shown(path);
  FromFile f{parse_csv(has_rows(path) ? path : read_text(path), place, o.dialect), {}};
  f.schedule = schedule_of(f.file, csv_options(r, o));
  f.schedule.name = std::filesystem::path(place).stem().string();
  return f;
}

Schedule make(const ScheduleChoice& choice, const Request& r) {
  if (const auto* name = std::get_if<std::string>(&choice.get())) {
    need_numbers(*name, r);
    return build_schedule(*name, r);
  }
  if (const auto* given = std::get_if<Schedule>(&choice.get())) return *given;
  return std::get<2>(choice.get())(r);
}

const std::string* file_of(const ScheduleChoice& choice) {
  const auto* name = std::get_if<std::string>(&choice.get());
  return name && names_a_file(*name) ? name : nullptr;
}

// "actor 1, position 4, 2F3" becomes "actor 1, position 4, 2F3 (mine.csv:2:17)".
void locate(std::vector<Finding>& findings, const CsvFile& file) {
  std::vector<std::vector<std::uint32_t>> columns(findings.empty() ? 0 : file.rows.size());
  for (std::size_t r = 0; r < columns.size(); ++r) {
    for (const CsvAction& a : file.rows[r]) {
      if (a.computes()) columns[r].push_back(a.column);
    }
  }
  for (Finding& f : findings) {
    // The first culprit of a missing action is its partner, not itself.
    if (f.culprits.empty() || f.kind == Finding::Kind::missing) continue;
    const ActionPlace p = f.culprits[0];
    f.fault.where += fmt::format(" ({}:{}:{})", file.name, p.actor.value + 1, columns[p.actor.value][p.position]);
  }
}

}  // namespace

bool names_a_file(std::string_view s) {
  if (has_rows(s) || s.ends_with(".csv") || s.find('/') != s.npos) return true;
  std::error_code ignored;
  return !is_known(s) && std::filesystem::is_regular_file(s, ignored);
}

Schedule choose_schedule(const ScheduleChoice& choice, const Request& r, const ChoiceOptions& o) {
  const std::string* path = file_of(choice);
  if (!path) return make(choice, r);
  FromFile f = read_schedule(*path, r, o);
  refuse(check_communication(f.file, f.schedule));
  return std::move(f.schedule);
}

CheckedSchedule check_schedule(const ScheduleChoice& choice, const Request& r, const ChoiceOptions& o) {
  ValidateOptions expected{.actors = std::max(0, r.actors),
                           .microbatches = std::max(0, r.microbatches),
                           .memory = r.memory,
                           .freed_by_i = r.freed_by_i};
  const std::string* path = file_of(choice);
  if (!path) {
    CheckedSchedule c{make(choice, r), {}};
    c.validation = validate(c.schedule, expected);
    return c;
  }
  FromFile f = read_schedule(*path, r, o);
  CheckedSchedule c{std::move(f.schedule), {}};
  c.validation = validate(c.schedule, expected);
  locate(c.validation.faults, f.file);
  locate(c.validation.notes, f.file);
  for (Fault& x : check_communication(f.file, c.schedule)) {
    c.validation.faults.push_back({Finding::Kind::communication, std::move(x), {}});
  }
  if (c.schedule.pipes() > 1 && o.pipes == CsvPipes::detect) {
    c.validation.notes.push_back({Finding::Kind::shape,
                                  fault(shown(*path), "say --pipes one if that is not meant",
                                        "read as bidirectional: stages {} to {} are the up pipe's", c.schedule.stages,
                                        2 * c.schedule.stages - 1),
                                  {}});
  }
  return c;
}

}  // namespace stretto
