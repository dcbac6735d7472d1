#include "stretto/runtime/measure.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <tuple>

namespace stretto {
namespace {

std::string label_of(Part p) {
  switch (p) {
    case Part::count:
    case Part::scale:
      return "prologue";
    case Part::total:
      return "outputs over ranks";
    case Part::combine:
      return "gradients over pieces and ranks";
    case Part::norm:
    case Part::clip:
      return "norm";
    default:
      return std::string(name_of(p));
  }
}

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
  bool first = true;
  for (const RunRecord& r : records) {
    const Run& run = std::get<Run>(mine.code[r.instruction]);
    Span span{.actor = actor, .start = r.start - from, .end = r.end - from, .waited = waited_str(p, r)};
    if (run.action == ~0u)
      span.label = label_of(p.step->tasks[run.task].part);
    else
      span.action = p.schedule.rows[std::size_t(actor)][run.action];
    const bool same =
        !first && run.action == action && r.waited <= 0 && (run.action != ~0u || out.spans.back().label == span.label);
    if (same)
      out.spans.back().end = span.end;
    else
      out.spans.push_back(std::move(span));
    if (p.step->tasks[run.task].part == Part::I && out.spans.back().action->phase == Phase::B)
      out.spans.back().halfway = out.spans.back().end;
    action = run.action;
    first = false;
  }
}

// Microbatches whose forward is done and whose last backward is not, a chunk counting as its part of an actor's stages.
std::vector<std::pair<double, double>> live(const Timeline& t, const Schedule& s, int actor) {
  std::vector<std::pair<double, double>> curve{{0, 0}};
  const double part = double(s.actors()) * double(s.pipes()) / double(std::max(1, s.stages));
  double amount = 0;
  std::map<std::tuple<int, int, std::uint32_t>, double> last;  // end of the last backward span
  for (const Span& x : t.spans)
    if (x.actor == actor && x.action && x.action->phase != Phase::F)
      last[{x.action->pipe, x.action->stage, x.action->microbatch}] = x.end;
  std::map<std::tuple<int, int, std::uint32_t>, bool> begun;
  std::vector<std::pair<double, double>> changes;
  for (const Span& x : t.spans)
    if (x.actor == actor && x.action && x.action->phase == Phase::F &&
        !begun[{x.action->pipe, x.action->stage, x.action->microbatch}]) {
      begun[{x.action->pipe, x.action->stage, x.action->microbatch}] = true;
      changes.push_back({x.start, part});
    }
  for (const auto& [key, end] : last) changes.push_back({end, -part});
  std::sort(changes.begin(), changes.end());
  for (const auto& [time, change] : changes) curve.push_back({time, amount += change});
  return curve;
}

}  // namespace

namespace {

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
  for (int a = 0; a < engine.actors(); ++a) t.memory.push_back(live(t, p.schedule, a));
  return t;
}

}  // namespace stretto
