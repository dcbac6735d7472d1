#include "stretto/program/gathers.h"

#include <algorithm>
#include <map>

#include "stretto/stage/storage.h"

namespace stretto {
namespace {

// The time for which a piece's parameters are whole.
struct Visit {
  std::uint16_t piece = 0;
  std::size_t first = 0;  // instruction that needs them first
  bool backward = true;   // only backward reads them
  std::size_t start = 0;  // the gather starts before this instruction
};

bool needs_gathered(const Step& s, const Task& t) {
  return std::any_of(t.inputs.begin(), t.inputs.end(),
                     [&](const Binding& b) { return b.place == Place::value && gathered(s, b.index); });
}

// Where a schedule says when the parameters of stages become whole.
class Unshards {
 public:
  Unshards(const Program& p, int actor) : marked_(p.schedule.marked(actor, StorageMark::Kind::unshard)) {
    if (!marked_) return;
    for (const StorageMark& m : p.schedule.marks[std::size_t(actor)])
      if (m.kind == StorageMark::Kind::unshard) before_[m.stage].push_back(m.before);
    for (auto& [stage, list] : before_) std::sort(list.begin(), list.end());
    const std::vector<Instruction>& code = p.actors[std::size_t(actor)].code;
    for (std::size_t i = 0; i < code.size(); ++i)
      if (const Run* r = std::get_if<Run>(&code[i]); r && r->action != ~0u)
        while (begins_.size() <= r->action) begins_.push_back(i);
  }
  bool marked() const { return marked_; }
  // The position of the newest mark of the stage that an action comes behind; its own when there is none.
  std::uint32_t of(std::uint32_t action, int stage) const {
    const auto list = before_.find(stage);
    if (list == before_.end()) return action;
    const auto later = std::upper_bound(list->second.begin(), list->second.end(), action);
    return later == list->second.begin() ? action : later[-1];
  }
  // The instruction with which the action at a position begins.
  std::size_t instruction(std::uint32_t position) const { return begins_[position]; }

 private:
  bool marked_ = false;
  std::map<int, std::vector<std::uint32_t>> before_;  // per stage
  std::vector<std::size_t> begins_;                   // per position
};

std::vector<Visit> visits_of(const Program& p, int actor, Reshard reshard) {
  const Step& s = *p.step;
  const std::vector<Instruction>& code = p.actors[std::size_t(actor)].code;
  const Unshards unshards(p, actor);
  std::vector<Visit> visits;
  std::map<std::uint16_t, std::pair<std::size_t, std::uint32_t>> newest;  // per piece: its visit and its mark
  std::uint16_t before = 0;
  for (std::size_t i = 0; i < code.size(); ++i) {
    const Run* r = std::get_if<Run>(&code[i]);
    if (!r || !needs_gathered(s, s.tasks[r->task])) continue;
    const Task& t = s.tasks[r->task];
    const std::uint32_t mark = unshards.marked() ? unshards.of(r->action, p.stage_of[t.piece]) : 0;
    const auto it = newest.find(t.piece);
    bool stays = it != newest.end();
    if (unshards.marked())
      stays = stays && it->second.second == mark;
    else if (reshard == Reshard::microbatch)
      stays = stays && before == t.piece;
    if (!stays) {
      // One ahead of the piece that works, or where the schedule says so.
      const std::size_t ahead = visits.empty() ? 0 : visits.back().first;
      newest[t.piece] = {visits.size(), mark};
      visits.push_back(
          {.piece = t.piece, .first = i, .start = unshards.marked() ? std::min(i, unshards.instruction(mark)) : ahead});
    }
    Visit& visit = visits[newest[t.piece].first];
    visit.backward = visit.backward && t.part != Part::F;
    before = t.piece;
  }
  return visits;
}

}  // namespace

void place_gathers(Program& p, int actor, Reshard reshard) {
  const Step& s = *p.step;
  std::vector<Instruction>& code = p.actors[std::size_t(actor)].code;
  const std::vector<Visit> visits = visits_of(p, actor, reshard);
  if (visits.empty()) return;
  std::map<std::pair<std::uint16_t, Gathered>, std::uint32_t> task_of_piece;
  for (std::uint32_t t = 0; t < s.tasks.size(); ++t)
    if (s.tasks[t].part == Part::U) task_of_piece[{s.tasks[t].piece, Gathered(s.tasks[t].subject)}] = t;
  std::uint32_t numbers = 0;
  for (const Instruction& i : code) numbers += std::holds_alternative<Start>(i);
  std::vector<Instruction> out;
  const auto task = [&](const Visit& v) {
    const auto less = task_of_piece.find({v.piece, Gathered::backward});
    return v.backward && less != task_of_piece.end() ? less->second : task_of_piece.at({v.piece, Gathered::whole});
  };
  const auto start = [&](std::size_t v) {
    Run run = std::get<Run>(code[visits[v].first]);
    run.task = task(visits[v]);
    out.push_back(Start{run, numbers + std::uint32_t(v)});
  };
  std::multimap<std::size_t, std::size_t> starts;  // instruction -> visit
  for (std::size_t v = 0; v < visits.size(); ++v) starts.insert({visits[v].start, v});
  for (std::size_t i = 0, v = 0; i < code.size(); ++i) {
    const bool used = v < visits.size() && visits[v].first == i;
    const auto [from, to] = starts.equal_range(i);
    for (auto it = from; it != to; ++it)
      if (!used || it->second <= v) start(it->second);
    if (used) {
      out.push_back(Await{numbers + std::uint32_t(v), task(visits[v])});
      for (auto it = from; it != to; ++it)
        if (it->second > v) start(it->second);
      ++v;
    }
    out.push_back(code[i]);
  }
  code = std::move(out);
}

namespace {

struct Whole {
  std::uint32_t from = 0, to = 0;  // positions in the row, both included
  bool reads = true;               // parameters are read: it stands there not only for the notation's sake
};

// Per stage of an actor: for which actions some of its parameters are whole, and before which the last of its gradients
// goes on its way.
struct Uses {
  std::map<int, std::vector<Whole>> whole;
  std::map<int, std::uint32_t> reduced;
};

Uses uses_of_storage(const Program& p, std::size_t actor) {
  const Step& s = *p.step;
  const std::vector<Instruction>& code = p.actors[actor].code;
  Uses u;
  std::map<std::uint32_t, Whole> visits;          // by number
  std::map<std::uint16_t, std::uint32_t> newest;  // per piece: the number that was awaited last
  std::map<std::uint32_t, int> stage_of_visit;    // by number
  std::uint32_t begun = 0;                        // actions
  for (const Instruction& i : code) {
    if (const StartSum* sum = std::get_if<StartSum>(&i)) u.reduced[p.buckets[sum->bucket].stage] = begun;
    if (const Start* start = std::get_if<Start>(&i)) {
      const Task& t = s.tasks[start->run.task];
      const int stage = p.stage_of[t.piece];
      if (t.part == Part::S) u.reduced[stage] = begun;
      if (t.part == Part::U && start->run.action != ~0u) {
        visits[start->number] = {start->run.action, start->run.action};
        stage_of_visit[start->number] = stage;
      }
    } else if (const Await* w = std::get_if<Await>(&i)) {
      if (visits.contains(w->number)) newest[s.tasks[w->task].piece] = w->number;
    } else if (const Run* r = std::get_if<Run>(&i); r && r->action != ~0u) {
      begun = std::max(begun, r->action + 1);
      if (const Task& t = s.tasks[r->task]; needs_gathered(s, t)) {
        Whole& w = visits[newest.at(t.piece)];
        w.to = std::max(w.to, r->action);
      }
    }
  }
  for (const auto& [number, w] : visits) u.whole[stage_of_visit[number]].push_back(w);
  // In this notation every action stands where its stage is whole, though some read no parameters.
  const Row& row = p.schedule.rows[actor];
  for (std::uint32_t k = 0; k < row.size(); ++k)
    if (const auto it = u.whole.find(row[k].stage); it != u.whole.end()) it->second.push_back({k, k, false});
  for (auto& [stage, list] : u.whole) {
    std::stable_sort(list.begin(), list.end(), [](const Whole& x, const Whole& y) { return x.from < y.from; });
    std::vector<Whole> merged;
    for (const Whole& w : list) {
      Whole* last = merged.empty() ? nullptr : &merged.back();
      const bool beside = last && w.from == last->to + 1 && (!w.reads || !last->reads);
      if (last && (w.from <= last->to || beside))
        last->to = std::max(last->to, w.to), last->reads = last->reads || w.reads;
      else
        merged.push_back(w);
    }
    list = std::move(merged);
  }
  return u;
}

}  // namespace

Schedule with_marks(const Program& p) {
  using Kind = StorageMark::Kind;
  Schedule s = p.schedule;
  s.marks.assign(p.actors.size(), {});
  bool any = false;
  for (std::size_t a = 0; a < p.actors.size(); ++a) {
    std::vector<StorageMark>& marks = s.marks[a];
    const auto put = [&](Kind kind, int stage, std::uint32_t before) {
      std::uint8_t pipe = 0;
      while (pipe + 1 < s.pipes() && s.actor_of[pipe][std::size_t(stage)] != int(a)) ++pipe;
      marks.push_back({.kind = kind, .pipe = pipe, .stage = std::uint16_t(stage), .before = before});
    };
    const Uses uses = uses_of_storage(p, a);
    for (const auto& [stage, list] : uses.whole)
      for (const Whole& w : list) put(Kind::unshard, stage, w.from), put(Kind::reshard, stage, w.to + 1);
    for (const auto& [stage, before] : uses.reduced) put(Kind::reduce_grad, stage, before);
    // At one position: what is let go, what is reduced, what becomes whole.
    const auto rank = [](Kind k) { return k == Kind::reshard ? 0 : k == Kind::reduce_grad ? 1 : 2; };
    std::stable_sort(marks.begin(), marks.end(), [&](const StorageMark& x, const StorageMark& y) {
      return std::pair(x.before, rank(x.kind)) < std::pair(y.before, rank(y.kind));
    });
    any = any || !marks.empty();
  }
  if (!any) s.marks.clear();
  return s;
}

}  // namespace stretto
