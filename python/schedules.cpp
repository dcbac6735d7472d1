// Schedules alone: what a name or rows of cells mean, whether they are right, what they cost.
#include <algorithm>

#include "calls.h"
#include "stretto/schedule/choice.h"
#include "stretto/schedule/prove.h"
#include "stretto/simulate/simulate.h"
#include "stretto/view/svg.h"

namespace stretto::python {
namespace {

CheckedSchedule checked(const Arguments& a) {
  const Request wanted{
      .actors = a.count("actors"), .microbatches = a.count("microbatches"), .chunks = a.count("chunks")};
  CheckedSchedule c = check_schedule(a.text("schedule"), wanted);
  refuse(c.validation.all_faults());
  return c;
}

SimulateOptions times_of(const Arguments& a, bool timeline = false) {
  SimulateOptions o{.timeline = timeline};
  o.times = {.F = a.number("F", 1), .I = a.number("I", 1), .W = a.number("W", 1), .message = a.number("message")};
  if (a.has("R")) o.recompute = a.number("R");
  return o;
}

}  // namespace

Field schedule_rows(const Arguments& a) {
  const Schedule s = checked(a).schedule;
  Field::Array rows;
  for (const Row& row : s.rows) {
    Field::Array cells;
    for (const Action& action : row) cells.emplace_back(cell(action, s.stages));
    rows.emplace_back(std::move(cells));
  }
  return rows;
}

Field check_of_schedule(const Arguments& a) {
  const CheckedSchedule c = checked(a);
  const Proof p = prove(c.schedule);
  std::vector<Fault> faults;
  for (const Finding& f : p.faults) faults.push_back(f.fault);
  refuse(std::move(faults));
  i64 messages = 0;
  for (const Channel& channel : p.channels) messages += i64(channel.messages);
  Field::Array notes;
  for (const Finding& n : c.validation.notes) notes.emplace_back(n.fault.str());
  const Schedule& s = c.schedule;
  return Field::Table{{"name", s.name},
                      {"actors", s.actors()},
                      {"stages", s.stages},
                      {"microbatches", s.microbatches},
                      {"actions", i64(s.actions())},
                      {"messages", messages},
                      {"capacity", p.smallest ? Field(*p.smallest) : Field()},
                      {"peak", numbers(c.validation.peak)},
                      {"notes", notes}};
}

Field simulate_schedule(const Arguments& a) {
  const Schedule s = checked(a).schedule;
  const Prediction p = simulate(s, times_of(a));
  return Field::Table{
      {"name", s.name},         {"actors", s.actors()}, {"stages", s.stages}, {"microbatches", s.microbatches},
      {"makespan", p.makespan}, {"span", p.span},       {"period", p.period}, {"bubble", p.bubble},
      {"peak", numbers(p.peak)}};
}

Field schedule_picture(const Arguments& a) {
  return Field(svg(simulate(checked(a).schedule, times_of(a, true)).timeline));
}

}  // namespace stretto::python
