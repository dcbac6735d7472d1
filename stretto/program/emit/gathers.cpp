#include "stretto/program/emit/gathers.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "stretto/step/storage.h"

namespace stretto {
namespace {

// A stretch of the code in which a piece's parameters are whole.
struct Visit {
  PieceId piece;
  InstructionId first;     // the first that needs them
  bool backward = true;    // only backward reads them
  InstructionId start{0};  // the gather starts before this one
};

// Where a schedule says when the parameters of stages become whole.
class Unshards {
 public:
  Unshards(const Program& p, ActorId actor) : marked_(p.schedule.marked(actor, StorageMark::Kind::unshard)) {
    if (!marked_) return;
    for (const StorageMark& m : p.schedule.marks[actor])
      if (m.kind == StorageMark::Kind::unshard) before_[m.stage].push_back(m.before);
    for (auto& [stage, list] : before_) std::sort(list.begin(), list.end());
    const auto& code = p.actors[actor].code;
    for (InstructionId i : code.ids())
      if (const Run* r = run_of(code[i]); r && r->action)
        while (begins_.size() <= r->action->value) begins_.push_back(i);
  }
  bool marked() const { return marked_; }
  // The position of the stage's last mark at or before an action; the action's own position when there is none.
  ActionId of(ActionId action, StageId stage) const {
    const auto list = before_.find(stage);
    if (list == before_.end()) return action;
    const auto later = std::upper_bound(list->second.begin(), list->second.end(), action);
    return later == list->second.begin() ? action : later[-1];
  }
  // The instruction with which the action at a position begins.
  InstructionId instruction(ActionId position) const { return begins_[position]; }

 private:
  bool marked_ = false;
  std::map<StageId, std::vector<ActionId>> before_;
  IdVector<ActionId, InstructionId> begins_;
};

std::vector<Visit> visits_of(const Program& p, ActorId actor, Reshard reshard) {
  const auto& code = p.actors[actor].code;
  const Unshards unshards(p, actor);
  struct Newest {
    std::size_t visit;
    std::optional<ActionId> mark;
  };
  std::vector<Visit> visits;
  std::map<PieceId, Newest> newest;
  std::optional<PieceId> before;
  for (InstructionId i : code.ids()) {
    const Run* r = run_of(code[i]);
    if (!r || !needs_gathered(*p.step, p.task(*r))) continue;
    const Task& t = p.task(*r);
    const PieceId piece = *t.piece;
    std::optional<ActionId> mark;
    if (unshards.marked()) mark = unshards.of(*r->action, p.stage_of[piece]);
    const auto it = newest.find(piece);
    bool stays = it != newest.end();
    if (unshards.marked())
      stays = stays && it->second.mark == mark;
    else if (reshard == Reshard::microbatch)
      stays = stays && before == piece;
    if (!stays) {
      // While the piece before it works, or where the schedule says so.
      const InstructionId ahead = visits.empty() ? InstructionId(0) : visits.back().first;
      newest[piece] = {visits.size(), mark};
      visits.push_back({.piece = piece, .first = i, .start = mark ? std::min(i, unshards.instruction(*mark)) : ahead});
    }
    Visit& visit = visits[newest[piece].visit];
    visit.backward = visit.backward && t.part != Part::F;
    before = piece;
  }
  return visits;
}

// The U tasks of a step.
class GatherTasks {
 public:
  explicit GatherTasks(const Step& s) {
    for (TaskId t : s.tasks.ids())
      if (s.tasks[t].part == Part::U) of_[{*s.tasks[t].piece, std::get<Gathered>(s.tasks[t].about)}] = t;
  }
  TaskId of(const Visit& v) const {
    const auto less = of_.find({v.piece, Gathered::backward});
    return v.backward && less != of_.end() ? less->second : of_.at({v.piece, Gathered::whole});
  }

 private:
  std::map<std::pair<PieceId, Gathered>, TaskId> of_;
};

}  // namespace

bool needs_gathered(const Step& s, const Task& t) {
  return std::any_of(t.inputs.begin(), t.inputs.end(), [&](const Binding& b) {
    const ValueId* v = as<ValueId>(b);
    return v && gathered(s, *v);
  });
}

void place_gathers(Program& p, ActorId actor, Reshard reshard) {
  ActorProgram& a = p.actors[actor];
  const std::vector<Visit> visits = visits_of(p, actor, reshard);
  if (visits.empty()) return;
  const GatherTasks tasks(*p.step);
  IdVector<InstructionId, Instruction> out;
  const auto collective = [first = a.collectives](std::size_t v) { return CollectiveId(first + v); };
  const auto start = [&](std::size_t v) {
    Run run = std::get<Run>(a.code[visits[v].first]);
    run.task = tasks.of(visits[v]);
    out.push_back(Start{run, collective(v)});
  };
  std::vector<std::size_t> starts(visits.size());  // visits, by where their gathers start
  std::iota(starts.begin(), starts.end(), std::size_t(0));
  std::stable_sort(starts.begin(), starts.end(), [&](auto x, auto y) { return visits[x].start < visits[y].start; });
  out.reserve(a.code.size() + 2 * visits.size());
  std::size_t v = 0;
  auto next = starts.begin();
  for (InstructionId i : a.code.ids()) {
    const bool used = v < visits.size() && visits[v].first == i;
    const auto here = [&] { return next != starts.end() && visits[*next].start == i; };
    for (; here() && (!used || *next <= v); ++next) start(*next);
    if (used) {
      out.push_back(Await{collective(v), tasks.of(visits[v])});
      ++v;
    }
    for (; here(); ++next) start(*next);
    out.push_back(a.code[i]);
  }
  a.collectives += static_cast<std::uint32_t>(visits.size());
  a.code = std::move(out);
}

}  // namespace stretto
