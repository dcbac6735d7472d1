#include "stretto/program/overlap.h"

#include <algorithm>
#include <set>

#include "stretto/base/match.h"

namespace stretto {
namespace {

// The new order of a region, by positions in it, so that it serves every region like it.
struct RunPart {
  RegionAt at;
  CallRange calls;
};
struct StartCall {
  RegionAt at;
  CallId call;
  bool operator==(const StartCall&) const = default;
};
struct AwaitCall {
  StartCall started;
};
struct Keep {  // the instruction as it is
  RegionAt at;
};
using Beat = std::variant<RunPart, StartCall, AwaitCall, Keep>;
using Recipe = std::vector<Beat>;

CallId next(CallId c) { return CallId(c.value + 1); }

class Cook {
 public:
  Cook(const Program& p, Region region, const StartedRuns& runs, const WorkTimes& times)
      : region_(region), work_(work_of(p, region, runs, times)) {
    for (RegionAt at : ids_until<RegionAt>(region.size()))
      if (const Await* w = std::get_if<Await>(&region[at.value])) awaits_.insert({w->collective, at});
  }

  Recipe run() {
    for (WorkId w : interleave(work_.work)) {
      for (const Flight& f : work_.needs[w]) await(f);
      put(w);
    }
    for (WorkId w : started_) await(w);
    for (CollectiveId c : work_.awaited) await(c);
    return std::move(out_);
  }

 private:
  void put(WorkId w) {
    const Origin& o = work_.origins[w];
    if (!o.call) {
      out_.push_back(Keep{o.at});
    } else if (work_.work[w].link) {
      out_.push_back(StartCall{o.at, *o.call});
      started_.push_back(w);
    } else {
      put(RunPart{o.at, {*o.call, next(*o.call)}});
    }
  }
  // Neighbouring calls of one run are one part.
  void put(RunPart part) {
    RunPart* last = out_.empty() ? nullptr : std::get_if<RunPart>(&out_.back());
    if (last && last->at == part.at && last->calls.to == part.calls.from)
      last->calls.to = part.calls.to;
    else
      out_.push_back(part);
  }
  void await(const Flight& f) {
    match(
        f, [&](WorkId w) { await(w); }, [&](CollectiveId c) { await(c); });
  }
  void await(WorkId w) {
    const Origin& o = work_.origins[w];
    if (!o.call) return await(std::get<Start>(region_[o.at.value]).collective);
    if (!done_.insert(w).second) return;
    const StartCall start{o.at, *o.call};
    // With nothing between them it is waited for in place.
    if (const StartCall* last = std::get_if<StartCall>(&out_.back()); last && *last == start) {
      out_.pop_back();
      put(RunPart{start.at, {start.call, next(start.call)}});
    } else {
      out_.push_back(AwaitCall{start});
    }
  }
  // Instructions of the region; what it does not await is awaited later.
  void await(CollectiveId c) {
    const auto at = awaits_.find(c);
    if (at == awaits_.end()) return;
    out_.push_back(Keep{at->second});
    awaits_.erase(at);
  }

  const Region region_;
  const RegionWork work_;
  std::map<CollectiveId, RegionAt> awaits_;  // that are still to come
  std::vector<WorkId> started_;
  std::set<WorkId> done_;
  Recipe out_;
};

// What a region's recipe depends on: microbatches and collectives are numbered as they appear.
class Likeness {
 public:
  Likeness(const Program& p, const StartedRuns& runs) : p_(p), runs_(runs) {}
  std::vector<u64> of(Region region) {
    for (const Instruction& i : region)
      match(
          i, [&](const Run& r) { add(0, r.task.value, r.microbatch); },
          [&](const Send& s) { add(1, value_of(s.transfer).value.value, value_of(s.transfer).microbatch); },
          [&](const Receive& r) { add(2, value_of(r.transfer).value.value, value_of(r.transfer).microbatch); },
          [&](const Start& s) { add(3, s.run.task.value, s.run.microbatch, s.collective); },
          [&](const Await& w) { add(4, w.task.value, runs_.at(w.collective).microbatch, w.collective); });
    return std::move(key_);
  }

 private:
  const SentValue& value_of(TransferId t) const { return *p_.transfers[t].value(); }
  void add(u64 kind, u64 what, MicrobatchId m, std::optional<CollectiveId> c = {}) {
    const u64 number = microbatches_.try_emplace(m, microbatches_.size()).first->second;
    const u64 flight = c ? collectives_.try_emplace(*c, collectives_.size()).first->second : 0;
    key_.insert(key_.end(), {kind, what, number, p_.pipe_of[m].value, flight});
  }
  const Program& p_;
  const StartedRuns& runs_;
  std::map<MicrobatchId, u64> microbatches_;
  std::map<CollectiveId, u64> collectives_;
  std::vector<u64> key_;
};

class Emission {
 public:
  Emission(const Program& p, Region region, ActorProgram& out, IdVector<InstructionId, Instruction>& code)
      : p_(p), region_(region), out_(out), code_(code) {}
  void run(const Recipe& recipe) {
    for (const Beat& b : recipe)
      match(
          b, [&](const RunPart& x) { code_.push_back(part(x.at, x.calls)); }, [&](const StartCall& x) { start(x); },
          [&](const AwaitCall& x) { await(x.started); }, [&](const Keep& x) { code_.push_back(region_[x.at.value]); });
  }

 private:
  Run part(RegionAt at, CallRange calls) const {
    Run r = std::get<Run>(region_[at.value]);
    const bool whole = calls.from == CallId(0) && calls.to == p_.calls[r.task]->calls.next_id();
    if (!whole) r.calls = calls;
    return r;
  }
  void start(const StartCall& x) {
    Run r = std::get<Run>(region_[x.at.value]);
    r.calls = CallRange{x.call, next(x.call)};
    const CollectiveId id(out_.collectives++);
    under_way_.push_back({x, id});
    code_.push_back(Start{r, id});
  }
  void await(const StartCall& x) {
    const auto it =
        std::find_if(under_way_.begin(), under_way_.end(), [&](const auto& entry) { return entry.first == x; });
    code_.push_back(Await{it->second, std::get<Run>(region_[x.at.value]).task});
  }
  const Program& p_;
  const Region region_;
  ActorProgram& out_;
  IdVector<InstructionId, Instruction>& code_;
  std::vector<std::pair<StartCall, CollectiveId>> under_way_;
};

}  // namespace

void overlap_calls(Program& p, ActorId actor, const WorkTimes& times) {
  if (p.ranks_per_actor() == 1) return;  // nobody to talk to
  ActorProgram& a = p.actors[actor];
  const StartedRuns runs = started_runs(a);
  std::map<std::vector<u64>, Recipe> recipes;
  IdVector<InstructionId, Instruction> code;
  for (const Region& region : regions_of(p, actor)) {
    if (!talks(p, region)) {
      for (const Instruction& i : region) code.push_back(i);
      continue;
    }
    const auto [it, fresh] = recipes.try_emplace(Likeness(p, runs).of(region));
    if (fresh) it->second = Cook(p, region, runs, times).run();
    Emission(p, region, a, code).run(it->second);
  }
  a.code = std::move(code);
}

}  // namespace stretto
