#include "stretto/program/account.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "stretto/program/emit/buckets.h"
#include "stretto/program/memory/lifetimes.h"
#include "stretto/step/keeps.h"
#include "stretto/step/storage.h"

namespace stretto {
namespace {

using Kind = Holding::Kind;

// When something happens, in the order of an actor's row: before its first action, in one of them, after the last.
using RowTime = Id<struct RowTimeTag>;
RowTime next(RowTime t) { return RowTime(t.value + 1); }

class RowClock {
 public:
  RowClock(const Program& p, ActorId actor) : row_(p.row(actor)) {
    for (std::size_t i = 0; i < row_.size(); ++i) {
      const Action& a = row_[i];
      const auto put = [&](Part part) { position_.try_emplace({part, a.stage, a.microbatch}, of(ActionId(i))); };
      if (a.phase == Phase::F) put(Part::F);
      if (a.phase == Phase::R) put(Part::R);
      if (a.phase == Phase::B || a.phase == Phase::I) put(Part::I);
      if (a.phase == Phase::B || a.phase == Phase::W) put(Part::W);
    }
    time_instructions(p.actors[actor].code);
  }

  RowTime before() const { return RowTime(0); }
  RowTime after() const { return RowTime(row_.size() + 1); }
  RowTime of(ActionId a) const { return RowTime(a.value + 1); }
  RowTime of(InstructionId i) const { return of_[i]; }
  // When a part of a stage runs. An R that the row does not list runs within the I.
  RowTime of(Part part, StageId stage, MicrobatchId m) const {
    const auto it = position_.find({part, stage, m});
    if (it != position_.end()) return it->second;
    return part == Part::R ? of(Part::I, stage, m) : after();
  }
  std::optional<ActionId> action(RowTime t) const {
    return t == before() || t == after() ? std::nullopt : std::optional(ActionId(t.value - 1));
  }

 private:
  // A receive belongs to the run after it, every other instruction without a task to the run before it.
  void time_instructions(const Code& code) {
    RowTime last = before();
    bool started = false;
    for (const Instruction& i : code) {
      const auto task = [&](const Run& r) { last = r.action ? of(*r.action) : started ? after() : before(); };
      match(
          i,
          [&](const Run& r) {
            task(r);
            started = started || r.action;
          },
          [&](const Start& s) { task(s.run); }, [](const Await&) {}, [](const Send&) {}, [](const Receive&) {});
      of_.push_back(last);
    }
    RowTime upcoming = after();
    for (std::size_t k = code.size(); k-- > 0;) {
      const InstructionId i(k);
      const Instruction x = code[i];
      if (received_by(x)) of_[i] = upcoming;
      if (run_of(x)) upcoming = of_[i];
    }
  }

  const Row& row_;
  std::map<std::tuple<Part, StageId, MicrobatchId>, RowTime> position_;
  IdVector<InstructionId, RowTime> of_;
};

class Accountant {
 public:
  Accountant(const Program& p, ActorId actor, const IdVector<StageId, StageKeeps>& kept)
      : p_(p), s_(*p.step), a_(p.actors[actor]), actor_(actor), clock_(p, actor), lives_(lifetimes(p, actor)) {
    for (StageId stage : kept.ids())
      for (const Keep& k : kept[stage].values) keeps_[k.value].push_back({stage, k});
  }

  ActorAccount run() {
    ActorAccount out;
    out.planned = a_.bytes[Arena::activations];
    out.scratch = a_.bytes[Arena::scratch];
    find_peak(out);
    find_kept(out);
    return out;
  }

 private:
  std::optional<StageId> stage_of(const LiveBuffer& b) const {
    if (!b.run) return std::nullopt;
    const Instruction last = a_.code[*b.run];
    const Run& r = *task_of(last);
    return r.action ? std::optional(p_.stage_of[*p_.task(r).piece]) : std::nullopt;
  }

  // The stage on this actor that keeps a value the longest, and where keeping it begins and ends.
  struct Keeper {
    StageId stage;
    RowTime begin, end;
    Keep keep;
  };
  std::optional<Keeper> keeper(const LiveBuffer& b) const {
    if (!b.value) return std::nullopt;
    const auto found = keeps_.find(*b.value);
    if (found == keeps_.end()) return std::nullopt;
    std::optional<Keeper> best;
    RowTime earliest = clock_.after();
    const auto& actor_of = p_.schedule.actor_of[p_.pipe_of[b.microbatch]];
    for (const auto& [stage, keep] : found->second) {
      if (actor_of[stage] != actor_) continue;
      const RowTime begin = clock_.of(keep.from, stage, b.microbatch), end = clock_.of(keep.until, stage, b.microbatch);
      if (begin == end) continue;
      earliest = std::min(earliest, begin);
      if (!best || end > best->end) best = Keeper{stage, begin, end, keep};
    }
    if (best) best->begin = earliest;
    return best;
  }

  void find_peak(ActorAccount& out) const {
    std::vector<i64> change(lives_.clock.list().back() + 2, 0);  // at every moment
    for (const LiveBuffer& b : lives_.buffers) {
      const i64 bytes = static_cast<i64>(aligned(b.bytes));
      change[b.first] += bytes, change[b.last + 1] -= bytes;
    }
    i64 live = 0, most = 0, when = 0;
    for (std::size_t now = 0; now < change.size(); ++now)
      if ((live += change[now]) > most) most = live, when = i64(now);
    out.live = u64(most);
    out.fragmentation = out.planned - out.live;
    const auto later = std::upper_bound(lives_.clock.begin(), lives_.clock.end() - 1, when);
    const InstructionId at(later - lives_.clock.begin() - 1);
    out.moment = moment(at);
    std::map<std::pair<Kind, std::optional<StageId>>, Holding> holdings;
    for (const LiveBuffer& b : lives_.buffers) {
      if (b.first > when || b.last < when) continue;
      const auto [kind, stage] = classify(b, clock_.of(at), when);
      Holding& h = holdings.try_emplace({kind, stage}, Holding{.kind = kind, .stage = stage}).first->second;
      h.bytes += aligned(b.bytes);
      h.microbatches.push_back(b.microbatch);
    }
    for (auto& [key, h] : holdings) {
      std::sort(h.microbatches.begin(), h.microbatches.end());
      h.microbatches.erase(std::unique(h.microbatches.begin(), h.microbatches.end()), h.microbatches.end());
      out.peak.push_back(std::move(h));
    }
  }
  std::pair<Kind, std::optional<StageId>> classify(const LiveBuffer& b, RowTime at, i64 when) const {
    if (b.value && of_storage(s_, *b.value)) return {Kind::storage, stage_of(b)};
    const std::optional<Keeper> k = keeper(b);
    const std::optional<StageId> stage = k ? k->stage : stage_of(b);
    if (b.received && *b.received > when) return {Kind::waiting, stage};
    if (clock_.of(b.made) == clock_.of(b.read)) return {Kind::temporary, stage_of(b)};
    if (!k || at < k->begin) return {Kind::waiting, stage};
    if (k->keep.from == Part::F) return {k->keep.until == Part::W ? Kind::until_w : Kind::until_i, stage};
    return {k->keep.until == Part::W ? Kind::for_w : Kind::for_i, stage};
  }

  void find_kept(ActorAccount& out) const {
    IdVector<RowTime, i64> change(clock_.after().value + 1, 0);  // after every action
    for (const LiveBuffer& b : lives_.buffers) {
      const std::optional<Keeper> k = keeper(b);
      if (!k) continue;
      const RowTime begin = std::max({next(clock_.before()), clock_.of(b.made), k->begin});
      const RowTime end = std::min(clock_.of(b.read), clock_.after());
      if (begin >= end) continue;
      change[begin] += static_cast<i64>(aligned(b.bytes)), change[end] -= static_cast<i64>(aligned(b.bytes));
    }
    i64 kept = 0;
    for (RowTime t : change.ids()) {
      kept += change[t];
      const std::optional<ActionId> action = clock_.action(t);
      if (!action || kept <= static_cast<i64>(out.kept)) continue;
      out.kept = u64(kept);
      out.kept_after = cell(p_.action(actor_, *action), p_.schedule.stages);
    }
  }

  std::string moment(InstructionId i) const {
    const RowTime t = clock_.of(i);
    const std::optional<ActionId> at = clock_.action(t);
    if (!at) return t == clock_.before() ? "before the first action" : "after the last action";
    const std::string action = cell(p_.action(actor_, *at), p_.schedule.stages);
    const Instruction x = a_.code[i];
    const Run* r = run_of(x);
    if (!r) return action;
    return fmt::format("{}, {} of piece {}", action, name_of(p_.task(*r).part), p_.task(*r).piece->value);
  }

  const Program& p_;
  const Step& s_;
  const ActorProgram& a_;
  const ActorId actor_;
  const RowClock clock_;
  const Lifetimes lives_;
  std::unordered_map<ValueId, std::vector<std::pair<StageId, Keep>>> keeps_;  // stages that keep a value
};

}  // namespace

ActorAccount account(const Program& p, ActorId actor) { return Accountant(p, actor, keeps(*p.step, p.stage_of)).run(); }

std::vector<ActorAccount> account(const Program& p) {
  const IdVector<StageId, StageKeeps> kept = keeps(*p.step, p.stage_of);
  std::vector<ActorAccount> all;
  for (ActorId a : p.actors.ids()) all.push_back(Accountant(p, a, kept).run());
  return all;
}

}  // namespace stretto
