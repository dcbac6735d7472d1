#include "stretto/runtime/measure.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>

#include "stretto/program/labels.h"

namespace stretto {
namespace {

std::string waited_str(const Program& p, const RunRecord& r) {
  if (!r.message || r.waited <= 0) return "";
  const Transfer& t = p.transfers[*r.message];
  const Route& route = p.routes[t.route];
  const std::string microbatch = t.value() ? fmt::format(" of microbatch {}", t.value()->microbatch.value) : "";
  return fmt::format("{}{} from actor {}, {:.3g} ms", route.name, microbatch, route.source.value, r.waited * 1e3);
}

void add_spans(const Program& p, ActorId actor, const std::vector<RunRecord>& records, double from, Timeline& out) {
  const ActorProgram& mine = p.actors[actor];
  std::optional<std::size_t> last;  // the newest span of a task
  std::optional<ActionId> action;
  for (const RunRecord& r : records) {
    const Run& run = *task_of(mine.code[r.instruction]);
    Span span{.actor = actor.value, .start = r.start - from, .end = r.end - from};
    if (std::holds_alternative<Start>(mine.code[r.instruction])) {
      span.lane = Lane::collective;
      span.label = label_of(p, run.task);
      out.spans.push_back(std::move(span));
      continue;
    }
    span.waited = waited_str(p, r);
    if (run.action)
      span.action = p.action(actor, *run.action);
    else
      span.label = label_of(p, run.task);
    const bool same =
        last && run.action == action && r.waited <= 0 && (run.action || out.spans[*last].label == span.label);
    if (same)
      out.spans[*last].end = span.end;
    else
      last = out.spans.size(), out.spans.push_back(std::move(span));
    Span& whole = out.spans[*last];
    if (p.task(run).part == Part::I && whole.action->phase == Phase::B) whole.halfway = whole.end;
    action = run.action;
  }
}

// Per actor, of its first rank; from the other processes too.
IdVector<ActorId, std::vector<RunRecord>> records_of(const Engine& engine) {
  IdVector<ActorId, std::vector<RunRecord>> all;
  std::vector<std::string> told;
  if (engine.peers()) {
    const std::vector<RunRecord>& own = engine.worker(engine.peers()->rank()).records();
    told = engine.peers()->gather({reinterpret_cast<const char*>(own.data()), own.size() * sizeof own[0]});
  }
  for (ActorId a : engine.program().actors.ids()) {
    const int rank = engine.program().rank_of(a, 0);
    if (engine.here(rank)) {
      all.push_back(engine.worker(rank).records());
    } else {
      const std::string& bytes = told[rank];
      std::vector<RunRecord>& its = all[all.push_back(std::vector<RunRecord>(bytes.size() / sizeof(RunRecord)))];
      std::memcpy(its.data(), bytes.data(), bytes.size());
    }
  }
  return all;
}

}  // namespace

Timeline measured_timeline(const Engine& engine) {
  const Program& p = engine.program();
  Timeline t{.actors = engine.actors(), .stages = p.schedule.stages, .title = p.schedule.name + ", measured"};
  double from = std::numeric_limits<double>::infinity();
  const IdVector<ActorId, std::vector<RunRecord>> records = records_of(engine);
  for (const std::vector<RunRecord>& r : records)
    if (!r.empty()) from = std::min(from, r.front().start);
  for (ActorId a : p.actors.ids()) add_spans(p, a, records[a], from, t);
  for (int a = 0; a < engine.actors(); ++a) t.memory.push_back(live_microbatches(t, p.schedule, a));
  return t;
}

}  // namespace stretto
