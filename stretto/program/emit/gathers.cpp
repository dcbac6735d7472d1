#include "stretto/program/emit/gathers.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "stretto/step/storage.h"

namespace stretto {
namespace {

// A stretch of the code in which a piece's parameters are whole.
struct Visit {
  PieceId piece;
  InstructionId first;     // the first that needs them
  std::size_t turn;        // ... is in this one
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
    InstructionId at(0);
    for (const Instruction& i : p.actors[actor].code) {
      if (const Run* r = run_of(i); r && r->action)
        while (begins_.size() <= r->action->value) begins_.push_back(at);
      ++at.value;
    }
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

// What of a turn's code needs gathered parameters: the same in all turns that are alike.
struct Need {
  std::size_t at;
  PieceId piece;
  bool forward = false;
};
class Needs {
 public:
  Needs(const Program& p, const Code& code) : p_(p), code_(code), known_(code.kinds().size()) {}
  const std::vector<Need>& of(TurnCodeId kind) {
    std::optional<std::vector<Need>>& needs = known_[kind];
    if (needs) return *needs;
    needs.emplace();
    const std::vector<Instruction>& all = code_.kinds()[kind].instructions;
    for (std::size_t k = 0; k < all.size(); ++k)
      if (const Run* r = run_of(all[k]); r && needs_gathered(*p_.step, p_.task(*r)))
        needs->push_back({k, p_.step->first_segment(*p_.task(*r).piece), p_.task(*r).part == Part::F});
    return *needs;
  }

 private:
  const Program& p_;
  const Code& code_;
  IdVector<TurnCodeId, std::optional<std::vector<Need>>> known_;
};

std::vector<Visit> visits_of(const Program& p, ActorId actor, Reshard reshard) {
  const auto& code = p.actors[actor].code;
  const Unshards unshards(p, actor);
  Needs needs(p, code);
  struct Newest {
    std::size_t visit;
    std::optional<ActionId> mark;
  };
  std::vector<Visit> visits;
  std::map<PieceId, Newest> newest;
  std::optional<PieceId> before;
  for (std::size_t turn = 0; turn < code.turns().size(); ++turn)
    for (const Need& need : needs.of(code.turns()[turn].code)) {
      const Turn& t = code.turns()[turn];
      const InstructionId i(t.first.value + need.at);
      const PieceId piece = need.piece;
      std::optional<ActionId> mark;
      if (unshards.marked()) {
        const Instruction x = code.at(t, need.at);
        mark = unshards.of(*run_of(x)->action, p.stage_of[piece]);
      }
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
        visits.push_back({.piece = piece,
                          .first = i,
                          .turn = turn,
                          .start = mark ? std::min(i, unshards.instruction(*mark)) : ahead});
      }
      Visit& visit = visits[newest[piece].visit];
      visit.backward = visit.backward && !need.forward;
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

namespace {

// What is put before an instruction of a turn.
struct Insertion {
  std::size_t at;
  bool start = true;  // else its Await
  TaskId task;
  std::size_t turns_ahead = 0;  // where what it is for begins: 1, in any later turn
  bool overwrite = true;
  std::size_t visit;
  auto key() const { return std::tuple(at, start, task, turns_ahead, overwrite); }
};
bool operator<(const Insertion& x, const Insertion& y) { return x.key() < y.key(); }

// In the order of the code, which the visits' first instructions have, but not their starts.
std::vector<std::vector<Insertion>> insertions_of(const Program& p, ActorId actor, const std::vector<Visit>& visits) {
  const Code& code = p.actors[actor].code;
  const GatherTasks tasks(*p.step);
  std::vector<std::vector<Insertion>> all(code.turns().size());
  const auto insert = [&](InstructionId i, std::size_t v, bool start) {
    const std::size_t t = code.turn_of(i);
    const Instruction first = code[visits[v].first];
    all[t].push_back({.at = i.value - code.turns()[t].first.value,
                      .start = start,
                      .task = tasks.of(visits[v]),
                      .turns_ahead = std::size_t(visits[v].turn > t),
                      .overwrite = run_of(first)->overwrite,
                      .visit = v});
  };
  std::vector<std::size_t> starts(visits.size());  // visits, by where their gathers start
  std::iota(starts.begin(), starts.end(), std::size_t(0));
  std::stable_sort(starts.begin(), starts.end(), [&](auto x, auto y) { return visits[x].start < visits[y].start; });
  auto next = starts.begin();
  for (std::size_t v = 0; v < visits.size(); ++v) {
    const InstructionId used = visits[v].first;
    for (; next != starts.end() && (visits[*next].start < used || (visits[*next].start == used && *next <= v)); ++next)
      insert(visits[*next].start, *next, true);
    insert(used, v, false);
    for (; next != starts.end() && visits[*next].start == used; ++next) insert(used, *next, true);
  }
  return all;
}

// With what is put into it. The numbers of what is new follow its own.
TurnCode with_insertions(const TurnCode& code, const std::vector<Insertion>& all, TurnNumbers n) {
  TurnCode out;
  auto next = all.begin();
  const auto number = [](auto& ids) {
    ids.push_back({});
    return typename std::remove_cvref_t<decltype(ids)>::value_type(ids.size() - 1);
  };
  for (std::size_t k = 0; k < code.instructions.size(); ++k) {
    for (; next != all.end() && next->at == k; ++next) {
      if (!next->start) {
        out.instructions.push_back(Await{number(n.collectives), next->task});
        continue;
      }
      const Run run{.task = next->task,
                    .microbatch = number(n.microbatches),
                    .overwrite = next->overwrite,
                    .action = number(n.actions)};
      out.instructions.push_back(Start{run, number(n.collectives)});
    }
    out.instructions.push_back(code.instructions[k]);
  }
  return out;
}

}  // namespace

void place_gathers(Program& p, ActorId actor, Reshard reshard) {
  ActorProgram& a = p.actors[actor];
  const std::vector<Visit> visits = visits_of(p, actor, reshard);
  if (visits.empty()) return;
  const std::vector<std::vector<Insertion>> all = insertions_of(p, actor, visits);
  std::map<std::pair<TurnCodeId, std::vector<Insertion>>, TurnCodeId> known;
  Code out;
  for (std::size_t t = 0; t < all.size(); ++t) {
    const Turn& turn = a.code.turns()[t];
    TurnNumbers numbers = a.code.numbers(turn);
    const auto [it, fresh] = known.try_emplace({turn.code, all[t]});
    if (fresh) it->second = out.add(with_insertions(a.code.kind(turn), all[t], numbers));
    for (const Insertion& x : all[t]) {
      numbers.collectives.push_back(CollectiveId(a.collectives + x.visit));
      if (!x.start) continue;
      const Instruction first = a.code[visits[x.visit].first];
      numbers.microbatches.push_back(run_of(first)->microbatch);
      numbers.actions.push_back(run_of(first)->action.value());
    }
    out.add(it->second, numbers);
  }
  a.collectives += static_cast<std::uint32_t>(visits.size());
  a.code = std::move(out);
}

}  // namespace stretto
