#include "stretto/plan/turn_work.h"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>

namespace stretto {
namespace {

struct TurnTask {
  Part part;
  PieceAt at;
  std::size_t action;
};

// One way through a stage's pieces.
struct Way {
  bool up;
  std::vector<Part> parts;
};
// As program/emit/rows.cpp has them.
std::vector<Way> ways_of(const TurnAction& a, Recompute recompute) {
  if (a.phase == Phase::F) return {{true, {Part::F}}};
  if (a.phase == Phase::R) return {{true, {Part::R}}};
  if (a.phase == Phase::W) return {{false, {Part::W}}};
  std::vector<Way> all{{false, {Part::I}}};
  if (recompute == Recompute::full)
    all.insert(all.begin(), {true, {Part::R}});
  else if (recompute != Recompute::none)
    all.front().parts.insert(all.front().parts.begin(), Part::R);
  if (a.phase == Phase::B && a.alternates) all.back().parts.push_back(Part::W);
  if (a.phase == Phase::B && !a.alternates) all.push_back({false, {Part::W}});
  return all;
}

// The tasks of a turn in the order of its code.
std::vector<TurnTask> tasks_of(const TurnKey& key, const StagePieces& stages, const TurnOptions& o) {
  std::vector<TurnTask> all;
  const auto& actions = key.actions;
  for (std::size_t i = 0; i < actions.size();) {
    std::size_t end = i;
    std::vector<StageId> order;
    bool completes = false;
    for (; end < actions.size() && actions[end].phase == Phase::W; ++end) {
      completes = completes || actions[end].completes;
      order.push_back(actions[end].stage);
    }
    if (completes) {  // piece by piece, so that sums can begin
      std::sort(order.rbegin(), order.rend());
      order.erase(std::unique(order.begin(), order.end()), order.end());
      for (StageId s : order)
        for (int piece = int(stages[s].size()); piece-- > 0;)
          for (std::size_t k = i; k < end; ++k)
            if (actions[k].stage == s) all.push_back({Part::W, {s, piece}, k});
      i = end;
      continue;
    }
    const TurnAction& a = actions[i];
    const int n = int(stages[a.stage].size());
    for (const Way& w : ways_of(a, o.recompute_of(a.stage)))
      for (int k = 0; k < n; ++k)
        for (Part part : w.parts) all.push_back({part, {a.stage, w.up ? k : n - 1 - k}, i});
    ++i;
  }
  std::erase_if(all, [&](const TurnTask& t) { return (*stages[t.at.stage][t.at.piece].work)[t.part].calls.empty(); });
  return all;
}

class TurnWriter {
 public:
  TurnWriter(const TurnKey& key, const StagePieces& stages, const TurnOptions& o)
      : key_(key), stages_(stages), o_(o), received_(key.actions.size()) {
    out_.visited = key.visited, out_.scattered = key.scattered;
    visits_ = visits_of(key, stages, o);
    if (key.next) visits_.push_back(*key.next);
  }

  TurnWork run() {
    for (std::size_t i = 0; i < key_.left.size(); ++i) weights_left(key_.left[i], i);
    const std::vector<TurnTask> tasks = tasks_of(key_, stages_, o_);
    for (const TurnTask& t : tasks) {
      task(t);
      if (gives(t)) send(t);
    }
    take_last();
    find_waiting();
    return std::move(out_);
  }

 private:
  void take_last() {
    using Kind = TurnItem::Kind;
    while (!out_.order.empty()) {
      const WorkId last = out_.order.back();
      const Kind kind = out_.items[last].kind;
      if (kind != Kind::scatter && kind != Kind::sum) return;
      if (kind == Kind::scatter) out_.last_scatter = out_.work[last].seconds, out_.scatter.reset();
      if (kind == Kind::sum) out_.last_sums += out_.work[last].seconds;
      out_.order.pop_back(), out_.items.pop_back(), out_.work.pop_back();
    }
  }
  void find_waiting() {
    IdVector<WorkId, TurnWeights*> of(out_.work.size(), nullptr);
    for (TurnWeights& w : out_.weights)
      for (std::uint32_t c = 0; c < w.calls; ++c) of[WorkId(w.first.value + c)] = &w;
    for (WorkId id : out_.work.ids())
      for (WorkId before : out_.work[id].after)
        if (of[before] && of[before] != of[id]) of[before]->waiting.push_back(id);
  }
  const PartWork& part_of(Part part, const PieceAt& at) const { return (*stages_[at.stage][at.piece].work)[part]; }
  const TurnAction& action_of(const TurnTask& t) const { return key_.actions[t.action]; }

  WorkId add(Work w, TurnItem i) {
    w.turn = 1 + key_.actions[i.action].turn;
    out_.work.push_back(std::move(w));
    out_.order.push_back(out_.items.push_back(i));
    return out_.order.back();
  }
  void after(WorkId w, WorkId before) {
    std::vector<WorkId>& list = out_.work[w].after;
    if (std::find(list.begin(), list.end(), before) == list.end()) list.push_back(before);
  }
  WorkId add_call(const PieceCall& c, std::size_t action, const PieceAt& at, Part part) {
    out_.talks = out_.talks || c.link;
    const std::uint32_t call = &c - part_of(part, at).calls.data();
    return add({.seconds = c.seconds, .link = c.link},
               {.action = action, .unhurried = c.unhurried, .at = at, .part = part, .call = call});
  }

  void task(const TurnTask& t) {
    const PartWork& part = part_of(t.part, t.at);
    if (o_.gathers && part.gathers()) visit(t);
    if (action_of(t).receives && !received_[t.action] && t.part != Part::R)
      received_[t.action] = add({}, {.kind = TurnItem::Kind::receive, .action = t.action});
    const bool weights = t.part == Part::W;
    std::optional<WorkId>& before = begun_[{t.action, weights}];
    std::optional<WorkId> first;
    const WorkId base(out_.work.size());
    bases_[{t.part, t.at, action_of(t).microbatch}] = base;
    for (const PieceCall& call : calls_of(t)) {
      const WorkId w = add_call(call, t.action, t.at, t.part);
      if (before) after(w, *before);
      if (!first && !call.link) first = w;
      for (const PieceCall::After& x : call.after)
        if (const auto it = bases_.find({x.part, t.at, action_of(t).microbatch}); it != bases_.end())
          after(w, WorkId(it->second.value + x.call));
      if (call.chained) chain(w, t);
      if (call.gathered && o_.gathers) {
        if (gather_)
          after(w, *gather_);
        else  // before the first visit: of a piece that is whole
          out_.items[w].of_gather = begun_visits_ > 0;
      }
      for (WorkId x : added_)
        if (weights) after(w, x);
      last_run_ = w;
    }
    if (first) before = first;
    if (weights) made(t, base);
  }

  std::span<const PieceCall> calls_of(const TurnTask& t) const {
    const PartWork& part = part_of(t.part, t.at);
    const bool ends = t.part == Part::R && t.at.piece + 1 == std::ssize(stages_[t.at.stage]);
    return std::span(part.calls).first(ends ? part.at_end : part.calls.size());
  }

  // After what the piece before it in the pass gives, or after the message.
  void chain(WorkId w, const TurnTask& t) {
    const bool up = t.part == Part::F || t.part == Part::R;
    const Part from = t.part == Part::W ? Part::I : t.part;
    const PieceAt other{t.at.stage, up ? t.at.piece - 1 : t.at.piece + 1};
    const auto it = bases_.find({from, other, action_of(t).microbatch});
    if (it != bases_.end())
      after(w, WorkId(it->second.value + part_of(from, other).gives));
    else if (const auto message = received(t))
      after(w, *message);
  }
  // The message that its pass begins with, also where a W is an action of its own.
  std::optional<WorkId> received(const TurnTask& t) const {
    const TurnAction& a = action_of(t);
    for (std::size_t i = 0; i <= t.action; ++i) {
      const TurnAction& b = key_.actions[i];
      const bool same_pass = (b.phase == Phase::F) == (a.phase == Phase::F);
      if (received_[i] && same_pass && b.stage == a.stage && b.microbatch == a.microbatch) return received_[i];
    }
    return std::nullopt;
  }
  // Is it the task that makes what another actor waits for?
  bool gives(const TurnTask& t) const {
    if (!action_of(t).sends) return false;
    if (t.part == Part::F) return t.at.piece + 1 == std::ssize(stages_[t.at.stage]);
    return t.part == Part::I && t.at.piece == 0;
  }
  void send(const TurnTask& t) {
    const WorkId w = add({.urgent = true}, {.kind = TurnItem::Kind::send, .action = t.action});
    const WorkId base = bases_.at({t.part, t.at, action_of(t).microbatch});
    after(w, WorkId(base.value + part_of(t.part, t.at).gives));
  }

  // The parameters of a piece are gathered while the one before it works (program/emit/gathers.h).
  void visit(const TurnTask& t) {
    if (out_.visited == t.at) return;
    out_.visited = t.at;
    gather_ = std::exchange(coming_, std::nullopt);
    if (++begun_visits_ >= visits_.size()) return;
    const PieceVisit& next = visits_[begun_visits_];
    const StagePiece& p = stages_[next.at.stage][next.at.piece];
    coming_ = add({.seconds = next.back ? p.gather_back : p.gather, .link = storage_link},
                  {.kind = TurnItem::Kind::gather, .action = t.action, .at = next.at});
    if (last_run_) after(*coming_, *last_run_);
    out_.gather = coming_;
  }

  // What the turn before has left comes first.
  void weights_left(const PieceAt& at, std::size_t which) {
    const WorkId base(out_.work.size());
    for (const PieceCall& c : part_of(Part::W, at).calls) {
      const WorkId w = add_call(c, 0, at, Part::W);
      out_.work[w].turn = 0;
      out_.items[w].left = which;
      if (left_) after(w, *left_);
    }
    left_ = base;
    accumulate(at, base);
  }
  // Each accumulator sees microbatches in order.
  void accumulate(const PieceAt& at, WorkId base) {
    const auto [it, fresh] = accumulated_.try_emplace(at, base);
    const auto calls = std::uint32_t(part_of(Part::W, at).calls.size());
    for (std::uint32_t c = 0; c < calls && !fresh; ++c) after(WorkId(base.value + c), WorkId(it->second.value + c));
    it->second = base;
    out_.weights.push_back({at, base, calls});
  }
  // Whole gradients are sent off, after those of the piece before have been added up; or summed once they are complete.
  void made(const TurnTask& t, WorkId base) {
    accumulate(t.at, base);
    if (o_.scatters) {
      settle(t.action);
      const WorkId sent = add({.seconds = stages_[t.at.stage][t.at.piece].scatter, .link = storage_link},
                              {.kind = TurnItem::Kind::scatter, .action = t.action, .at = t.at});
      for (std::uint32_t c = 0; c < part_of(Part::W, t.at).calls.size(); ++c) after(sent, WorkId(base.value + c));
      out_.scatter = scatter_ = sent;
      out_.scattered = t.at, out_.scattered_by = t.action;
      out_.weights.back().sent = true;
    } else if (action_of(t).completes) {
      sum(t, base);
    }
  }
  // A call makes gradients of as many parameters as it takes time.
  void sum(const TurnTask& t, WorkId base) {
    const PartWork& part = part_of(Part::W, t.at);
    const double all = part.seconds(), sums = stages_[t.at.stage][t.at.piece].sums;
    if (sums == 0 || all == 0) return;
    for (std::uint32_t c = 0; c < part.calls.size(); ++c) {
      const double share = part.calls[c].seconds / all;
      if (share < 1e-3) continue;
      const WorkId sent =
          add({.seconds = share * sums, .link = gradients_link}, {.kind = TurnItem::Kind::sum, .action = t.action});
      after(sent, WorkId(base.value + c));
      out_.weights.back().sent = true;
    }
  }
  void settle(std::size_t action) {
    if (!out_.scattered) return;
    std::optional<WorkId>& before = begun_[{action, true}];
    std::optional<WorkId> first;
    for (const PieceCall& c : part_of(Part::A, *out_.scattered).calls) {
      const WorkId w = add_call(c, action, *out_.scattered, Part::A);
      if (before) after(w, *before);
      if (!first) first = w;
      if (scatter_)
        after(w, *scatter_), out_.items[w].scatter = scatter_;
      else
        out_.items[w].of_scatter = true;
      added_.push_back(w);
      last_run_ = w;
    }
    if (first) before = first;
  }

  const TurnKey& key_;
  const StagePieces& stages_;
  const TurnOptions& o_;
  TurnWork out_;
  std::vector<PieceVisit> visits_;
  std::size_t begun_visits_ = 0;
  std::vector<std::optional<WorkId>> received_;             // per action: its message
  std::map<std::tuple<Part, PieceAt, int>, WorkId> bases_;  // the first call of each task, by microbatch
  std::map<PieceAt, WorkId> accumulated_;                   // of the newest W of a piece
  // Of weight gradients and of the others, per action: nothing of a task begins before the task before it has.
  std::map<std::pair<std::size_t, bool>, std::optional<WorkId>> begun_;
  std::optional<WorkId> gather_, coming_;  // of the piece at hand, of the next
  std::optional<WorkId> scatter_, last_run_, left_;
  std::vector<WorkId>
      added_;  // so far: every later W waits for them, so that whole gradients of two pieces exist at a time
};

}  // namespace

TurnWork turn_work(const TurnKey& key, const StagePieces& stages, const TurnOptions& o) {
  return TurnWriter(key, stages, o).run();
}

std::vector<PieceVisit> visits_of(const TurnKey& key, const StagePieces& stages, const TurnOptions& o) {
  std::vector<PieceVisit> all;
  if (!o.gathers) return all;
  std::optional<PieceAt> at = key.visited;
  for (const TurnTask& t : tasks_of(key, stages, o)) {
    if (at == t.at || !(*stages[t.at.stage][t.at.piece].work)[t.part].gathers()) continue;
    all.push_back({t.at, t.part != Part::F});
    at = t.at;
  }
  return all;
}

}  // namespace stretto
