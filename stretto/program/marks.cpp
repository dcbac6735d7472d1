#include "stretto/program/marks.h"

#include <algorithm>
#include <map>

#include "stretto/program/emit/gathers.h"

namespace stretto {
namespace {

struct Whole {
  ActionId from, to;  // both included
  bool reads = true;  // parameters are read; false: only the notation needs it
};

// Per stage of an actor: for which actions some of its parameters are whole, and before which action the last of its
// gradients is sent off to be reduced.
struct Uses {
  std::map<StageId, std::vector<Whole>> whole;
  std::map<StageId, ActionId> reduced;
};

// Goes through an actor's code and notes when collectives of storage begin, and who reads what they make.
class Reader {
 public:
  Reader(const Program& p, ActorId actor) : p_(p) {
    for (const Instruction& i : p.actors[actor].code)
      match(
          i, [&](const Run& r) { run(r); }, [&](const Start& s) { start(s); }, [&](const Await& w) { await(w); },
          [](const Send&) {}, [](const Receive&) {});
    for (const auto& [collective, visit] : visits_) uses.whole[visit.stage].push_back(visit.whole);
  }
  Uses uses;

 private:
  struct Visit {
    StageId stage;
    Whole whole;
  };
  void start(const Start& s) {
    const Task& t = p_.task(s.run);
    if (t.part == Part::sum) uses.reduced[p_.step->buckets[std::get<BucketId>(t.about)].stage] = begun_;
    if (t.part == Part::S) uses.reduced[p_.stage_of[*t.piece]] = begun_;
    if (t.part == Part::U && s.run.action)
      visits_[s.collective] = {p_.stage_of[*t.piece], {*s.run.action, *s.run.action}};
  }
  void await(const Await& w) {
    if (visits_.contains(w.collective)) newest_[*p_.step->tasks[w.task].piece] = w.collective;
  }
  void run(const Run& r) {
    if (!r.action) return;
    begun_ = std::max(begun_, ActionId(r.action->value + 1));
    if (const Task& t = p_.task(r); needs_gathered(*p_.step, t)) {
      Whole& w = visits_.at(newest_.at(*t.piece)).whole;
      w.to = std::max(w.to, *r.action);
    }
  }

  const Program& p_;
  std::map<CollectiveId, Visit> visits_;
  std::map<PieceId, CollectiveId> newest_;  // per piece: what was awaited last
  ActionId begun_{0};                       // actions so far
};

std::vector<Whole> merged(std::vector<Whole> list) {
  std::stable_sort(list.begin(), list.end(), [](const Whole& x, const Whole& y) { return x.from < y.from; });
  std::vector<Whole> out;
  for (const Whole& w : list) {
    Whole* last = out.empty() ? nullptr : &out.back();
    const bool beside = last && w.from.value == last->to.value + 1 && (!w.reads || !last->reads);
    if (last && (w.from <= last->to || beside))
      last->to = std::max(last->to, w.to), last->reads = last->reads || w.reads;
    else
      out.push_back(w);
  }
  return out;
}

Uses uses_of_storage(const Program& p, ActorId actor) {
  Uses u = Reader(p, actor).uses;
  // The notation wants every action to stand where its stage is whole, though some actions read no parameters.
  const Row& row = p.row(actor);
  for (std::size_t k = 0; k < row.size(); ++k)
    if (const auto it = u.whole.find(row[k].stage); it != u.whole.end())
      it->second.push_back({ActionId(k), ActionId(k), false});
  for (auto& [stage, list] : u.whole) list = merged(std::move(list));
  return u;
}

std::vector<StorageMark> marks_of(const Program& p, ActorId actor) {
  using Kind = StorageMark::Kind;
  std::vector<StorageMark> marks;
  const auto put = [&](Kind kind, StageId stage, ActionId before) {
    const bool down = p.schedule.pipes() == 1 || p.schedule.actor_of[down_pipe][stage] == actor;
    marks.push_back({.kind = kind, .pipe = down ? down_pipe : up_pipe, .stage = stage, .before = before});
  };
  const Uses uses = uses_of_storage(p, actor);
  for (const auto& [stage, list] : uses.whole)
    for (const Whole& w : list) put(Kind::unshard, stage, w.from), put(Kind::reshard, stage, ActionId(w.to.value + 1));
  for (const auto& [stage, before] : uses.reduced) put(Kind::reduce_grad, stage, before);
  // At one position: first what is let go, then what is reduced, then what becomes whole.
  const auto rank = [](Kind k) { return k == Kind::reshard ? 0 : k == Kind::reduce_grad ? 1 : 2; };
  std::stable_sort(marks.begin(), marks.end(), [&](const StorageMark& x, const StorageMark& y) {
    return std::pair(x.before, rank(x.kind)) < std::pair(y.before, rank(y.kind));
  });
  return marks;
}

}  // namespace

Schedule with_marks(const Program& p) {
  Schedule s = p.schedule;
  s.marks.clear();
  for (ActorId a : p.actors.ids()) s.marks.push_back(marks_of(p, a));
  if (std::all_of(s.marks.begin(), s.marks.end(), [](const auto& m) { return m.empty(); })) s.marks.clear();
  return s;
}

}  // namespace stretto
