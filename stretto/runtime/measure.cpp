#include "stretto/runtime/measure.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>

#include "stretto/program/labels.h"

namespace stretto {
namespace {

std::string waited_str(const Program& p, const RunRecord& r) {
  if (r.message == ~0u || r.waited <= 0) return "";
  const Transfer& t = p.transfers[r.message];
  const Route& route = p.routes[t.route];
  const std::string microbatch = t.value == ~0u ? "" : fmt::format(" of microbatch {}", t.microbatch);
  return fmt::format("{}{} from actor {}, {:.3g} ms", route.name, microbatch, route.source, r.waited * 1e3);
}

void add_spans(const Program& p, int actor, const std::vector<RunRecord>& records, double from, Timeline& out) {
  const ActorProgram& mine = p.actors[std::size_t(actor)];
  std::uint32_t action = ~0u;
  std::size_t last = 0;  // the newest span of a task
  bool first = true;
  for (const RunRecord& r : records) {
    const Run* task = std::get_if<Run>(&mine.code[r.instruction]);
    if (!task) {
      out.spans.push_back({.actor = actor,
                           .lane = Lane::collective,
                           .start = r.start - from,
                           .end = r.end - from,
                           .label = label_of(p, mine.code[r.instruction])});
      continue;
    }
    const Run& run = *task;
    Span span{.actor = actor, .start = r.start - from, .end = r.end - from, .waited = waited_str(p, r)};
    if (run.action == ~0u)
      span.label = label_of(p, run);
    else
      span.action = p.schedule.rows[std::size_t(actor)][run.action];
    const bool same =
        !first && run.action == action && r.waited <= 0 && (run.action != ~0u || out.spans[last].label == span.label);
    if (same)
      out.spans[last].end = span.end;
    else
      last = out.spans.size(), out.spans.push_back(std::move(span));
    if (p.step->tasks[run.task].part == Part::I && out.spans[last].action->phase == Phase::B)
      out.spans[last].halfway = out.spans[last].end;
    action = run.action;
    first = false;
  }
}

// Per actor, of its first rank; from the other processes too.
std::vector<std::vector<RunRecord>> records_of(const Engine& engine) {
  std::vector<std::vector<RunRecord>> all;
  std::vector<std::string> told;
  if (engine.peers()) {
    const std::vector<RunRecord>& own = engine.worker(engine.peers()->rank()).records();
    told = engine.peers()->gather({reinterpret_cast<const char*>(own.data()), own.size() * sizeof own[0]});
  }
  for (int a = 0; a < engine.actors(); ++a) {
    const int rank = engine.program().rank_of(a, 0);
    if (engine.here(rank)) {
      all.push_back(engine.worker(rank).records());
    } else {
      const std::string& bytes = told[std::size_t(rank)];
      all.emplace_back(bytes.size() / sizeof(RunRecord));
      std::memcpy(all.back().data(), bytes.data(), bytes.size());
    }
  }
  return all;
}

}  // namespace

Timeline measured_timeline(const Engine& engine) {
  const Program& p = engine.program();
  Timeline t{.actors = engine.actors(), .stages = p.schedule.stages, .title = p.schedule.name + ", measured"};
  double from = std::numeric_limits<double>::infinity();
  const std::vector<std::vector<RunRecord>> records = records_of(engine);
  for (const std::vector<RunRecord>& r : records)
    if (!r.empty()) from = std::min(from, r.front().start);
  for (int a = 0; a < engine.actors(); ++a) add_spans(p, a, records[std::size_t(a)], from, t);
  for (int a = 0; a < engine.actors(); ++a) t.memory.push_back(live_microbatches(t, p.schedule, a));
  return t;
}

}  // namespace stretto
