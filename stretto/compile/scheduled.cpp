#include "stretto/compile/scheduled.h"

#include <algorithm>

namespace stretto {
namespace {

// Every pipe has gradients of its own, which are added up: one without microbatches would have none.
void check_pipes(const Schedule& s) {
  IdVector<PipeId, char> works(s.pipes(), 0);
  for (const Row& row : s.rows)
    for (const Action& a : row) works[a.pipe] = 1;
  const auto idle = std::find(works.begin(), works.end(), 0);
  if (idle == works.end()) return;
  throw Error("schedule", "'{}' has {} pipes, and pipe {} gets none of the {} microbatches", s.name, s.pipes(),
              idle - works.begin(), s.microbatches)
      .hint("use at least {} microbatches, or a schedule of one pipe, e.g. 1f1b", s.pipes())
      .about({"parallel.schedule"});
}

void check_segments(const Schedule& s, int segments) {
  if (s.segments != segments)
    throw Error("schedule", "'{}' cuts microbatches into {} segments, and the run into {}", s.name, s.segments,
                segments)
        .hint("use train.segments = {}, or another schedule", s.segments)
        .about({"parallel.schedule", "train.segments"});
  if (segments == 1 && s.name.starts_with("seq-"))
    throw Error("schedule", "'{}' is for sequences that are cut into segments, and these are not", s.name)
        .hint("say into how many, e.g. train.segments = 4, or use 1f1b")
        .about({"parallel.schedule"});
}

}  // namespace

Schedule schedule_of(const Parallel& p, int microbatches, int segments) {
  for (const Axis& a : p.mesh)
    if (a.size < 1)
      throw Error("mesh", "axis '{}' has size {}", a.name, a.size)
          .hint("sizes are at least 1")
          .about({"parallel." + a.name, "parallel.mesh." + a.name});
  Request request{
      .actors = p.mesh.extent("pipe"), .microbatches = microbatches, .chunks = p.chunks, .segments = segments};
  if (p.measured) request.times = even_times(*p.measured, request.actors), request.times.message = p.link.latency;
  CheckedSchedule checked = check_schedule(p.schedule, request);
  refuse(checked.validation.all_faults());
  Schedule& s = checked.schedule;
  check_segments(s, segments);
  check_pipes(s);
  return std::move(s);
}

void check_tasks(i64 pieces, i64 microbatches, bool trains) {
  const i64 phases = trains ? 3 : 1, each = phases * pieces;  // F, I, W
  if (microbatches <= most_tasks / each) return;
  throw Error("schedule", "{} microbatches of a model of {} pieces are {} tasks in a step, and at most {} are possible",
              microbatches, pieces, microbatches * each, most_tasks)
      .hint("use at most {} microbatches of more rows each{}", std::max<i64>(1, most_tasks / each),
            each > most_tasks ? ", and a model of fewer layers" : "")
      .about({"train.microbatches"});
}

Schedule forward_part(Schedule s) {
  for (Row& row : s.rows) std::erase_if(row, [](const Action& a) { return a.phase != Phase::F || a.segment > 0; });
  s.segments = 1;
  s.marks.clear();  // positions in rows have changed
  return s;
}

Schedule forward_part(Schedule s, int microbatches) {
  s = forward_part(std::move(s));
  if (s.microbatches == microbatches) return s;
  for (Row& row : s.rows) row.clear();
  for (int m = 0; m < microbatches; ++m)
    for (int stage = 0; stage < s.stages; ++stage) s.rows[s.actor_of[down_pipe][StageId(stage)]].F(stage, m);
  s.microbatches = microbatches;
  return s;
}

}  // namespace stretto
