#include "stretto/runtime/measure.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>

#include "stretto/base/clock.h"
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

using RankRecords = std::vector<std::vector<RunRecord>>;  // per rank

void add_spans(const Program& p, int rank, const std::vector<RunRecord>& records, double from, Timeline& out) {
  const ActorId actor = p.actor_of_rank(rank);
  const ActorProgram& mine = p.actors[actor];
  std::optional<std::size_t> last;  // the newest span of a task
  std::optional<ActionId> action;
  for (const RunRecord& r : records) {
    const Instruction at = mine.code[r.instruction];
    const Run& run = *task_of(at);
    Span span{.actor = actor.value,
              .coordinate = rank % p.ranks_per_actor(),
              .start = r.start - from,
              .end = r.end - from,
              .waiting = r.within};
    if (start_of(at)) {
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
      out.spans[*last].end = span.end, out.spans[*last].waiting += span.waiting;
    else
      last = out.spans.size(), out.spans.push_back(std::move(span));
    Span& whole = out.spans[*last];
    if (p.task(run).part == Part::I && whole.action->phase == Phase::B) whole.halfway = whole.end;
    action = run.action;
  }
}

// When a rank had done all that stands before an instruction, and when it went on after it.
double done_before(const std::vector<RunRecord>& records, InstructionId i) {
  const auto next = std::lower_bound(records.begin(), records.end(), i,
                                     [](const RunRecord& r, InstructionId at) { return r.instruction < at; });
  return next == records.begin() ? records.front().start : next[-1].end;
}
double went_on_after(const std::vector<RunRecord>& records, InstructionId i) {
  const auto next = std::upper_bound(records.begin(), records.end(), i,
                                     [](InstructionId at, const RunRecord& r) { return at < r.instruction; });
  return next == records.end() ? records.back().end : next->start;
}

void add_messages(const Program& p, const RankRecords& records, double from, Timeline& out) {
  IdVector<TransferId, std::optional<InstructionId>> taken(p.transfers.size());
  for (const ActorProgram& a : p.actors)
    for (InstructionId i : a.code.ids())
      if (const auto t = received_by(a.code[i])) taken[*t] = i;
  for (int rank = 0; rank < p.ranks(); ++rank) {
    const ActorProgram& mine = p.actors[p.actor_of_rank(rank)];
    for (InstructionId i : mine.code.ids()) {
      const std::optional<TransferId> sent = sent_by(mine.code[i]);
      if (!sent || !taken[*sent]) continue;
      const Transfer& t = p.transfers[*sent];
      const Route& route = p.routes[t.route];
      const int coordinate = rank % p.ranks_per_actor(), target = p.rank_of(route.target, coordinate);
      if (records[rank].empty() || records[target].empty()) continue;
      const double start = done_before(records[rank], i) - from;
      const double end = went_on_after(records[target], *taken[*sent]) - from;
      const std::string microbatch = t.value() ? fmt::format(" of microbatch {}", t.value()->microbatch.value) : "";
      out.spans.push_back({.actor = route.source.value,
                           .coordinate = coordinate,
                           .lane = Lane::message,
                           .start = start,
                           .end = std::max(start, end),
                           .label = fmt::format("{}{} to actor {}", route.name, microbatch, route.target.value)});
    }
  }
}

// What a process tells the others: its clock, right after all have met, and its records.
std::string told_by(const Engine& engine) {
  engine.peers()->gather({});
  const double clock = now();
  const std::vector<RunRecord>& own = engine.worker(engine.peers()->rank()).records();
  std::string text(reinterpret_cast<const char*>(&clock), sizeof clock);
  return text.append(reinterpret_cast<const char*>(own.data()), own.size() * sizeof own[0]);
}

// Of all ranks. Times of other machines are converted to this one's clock, as closely as a meeting of all allows.
RankRecords records_of(const Engine& engine) {
  RankRecords all(engine.program().ranks());
  if (!engine.peers()) {
    for (std::size_t rank = 0; rank < all.size(); ++rank) all[rank] = engine.worker(rank).records();
    return all;
  }
  const std::vector<std::string> told = engine.peers()->gather(told_by(engine));
  const std::vector<int>& nodes = engine.peers()->nodes();
  std::vector<double> clocks(told.size());
  for (std::size_t rank = 0; rank < told.size(); ++rank) {
    std::memcpy(&clocks[rank], told[rank].data(), sizeof(double));
    all[rank].resize((told[rank].size() - sizeof(double)) / sizeof(RunRecord));
    std::memcpy(all[rank].data(), told[rank].data() + sizeof(double), all[rank].size() * sizeof(RunRecord));
    if (nodes[rank] == nodes[0]) continue;
    for (RunRecord& r : all[rank]) r.start -= clocks[rank] - clocks[0], r.end -= clocks[rank] - clocks[0];
  }
  return all;
}

}  // namespace

void PieceClock::add(const Engine& engine) {
  const Program& p = engine.program();
  const RankRecords records = records_of(engine);
  for (std::size_t rank = 0; rank < records.size(); ++rank) {
    const ActorId actor = p.actor_of_rank(rank);
    std::map<std::tuple<ActionId, int, Part>, double> took;  // a task may be several instructions
    for (const RunRecord& r : records[rank]) {
      const Instruction at = p.actors[actor].code[r.instruction];
      const Run& run = *task_of(at);
      const Task& task = p.task(run);
      if (run.action && !start_of(at) && of_an_action(task.part))
        took[{*run.action, task.piece->value, task.part}] += r.end - r.start - r.within;
    }
    for (const auto& [which, seconds] : took)
      seconds_[{std::get<1>(which), actor.value, std::get<2>(which)}].push_back(seconds);
  }
}

std::vector<MeasuredPiece> PieceClock::pieces() const {
  std::map<std::pair<int, int>, MeasuredPiece> all;
  for (const auto& [which, seconds] : seconds_) {
    const auto& [piece, actor, part] = which;
    MeasuredPiece& m = all[{piece, actor}];
    m.piece = piece, m.actor = actor;
    std::vector<double> sorted = seconds;
    std::ranges::sort(sorted);
    const double median = std::max(0.0, sorted[sorted.size() / 2]);
    if (part == Part::F) m.F = median;
    if (part == Part::I) m.I = median;
    if (part == Part::W) m.W = median;
  }
  std::vector<MeasuredPiece> list;
  for (const auto& [which, m] : all) list.push_back(m);
  return list;
}

Timeline measured_timeline(const Engine& engine) {
  const Program& p = engine.program();
  Timeline t{.actors = engine.actors(),
             .stages = p.schedule.stages,
             .ranks = p.ranks_per_actor(),
             .title = p.schedule.name + ", measured"};
  double from = std::numeric_limits<double>::infinity();
  const RankRecords records = records_of(engine);
  for (const std::vector<RunRecord>& r : records)
    if (!r.empty()) from = std::min(from, r.front().start);
  for (std::size_t rank = 0; rank < records.size(); ++rank) add_spans(p, rank, records[rank], from, t);
  add_messages(p, records, from, t);
  std::stable_sort(t.spans.begin(), t.spans.end(), [&](const Span& a, const Span& b) {
    return t.row(a) != t.row(b) ? t.row(a) < t.row(b) : a.start < b.start;
  });
  for (int a = 0; a < engine.actors(); ++a) t.memory.push_back(live_microbatches(t, p.schedule, a));
  return t;
}

}  // namespace stretto
