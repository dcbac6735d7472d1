#include "stretto/program/overlap/recipe.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "stretto/base/match.h"

namespace stretto {
namespace {

std::optional<ActionId> turn_at(const Program& p, ActorId actor, const Instruction& i) {
  const Run* r = task_of(i);
  if (!r || !r->action) return std::nullopt;
  return turn_of(p.row(actor), *r->action);
}

CallId next(CallId c) { return CallId(c.value + 1); }

class Cook {
 public:
  Cook(const Passage& passage, RegionWork& work, WorkTimes& times)
      : p_(passage.program), region_(passage.region), work_(work) {
    set_times(work_, p_, passage.actor, region_, times);
    for (const AwaitOf& a : work_.awaits)
      if (a.started) await_of_[*a.started] = a.at;
    double all = 0;  // no work that waits for nothing ends later
    for (const Work& w : work_.work) all += w.seconds;
    for (const auto& [at, late] : passage.late)
      if (std::isfinite(late)) all += late;
    for (WorkId w : work_.work.ids()) {
      const RegionAt at = work_.origins[w].at;
      const auto late = passage.late.find(at);
      work_.work[w].ready = late == passage.late.end() ? 0 : std::min(late->second, all);
      const std::optional<ActionId> turn = turn_at(p_, passage.actor, region_[at.value]);
      work_.work[w].turn = turn ? turn->value : 0;
    }
  }

  Recipe run(std::size_t leaves) {
    Interleaved all = interleave(work_.work);
    const std::vector<RegionAt> left = leave(all, leaves);
    for (WorkId w : all.order) {
      for (const Flight& f : work_.needs[w]) await(f);
      put(w);
      if (work_.work[w].urgent && !work_.origins[w].call) sent_.push_back({work_.origins[w].at, all.ends[w]});
    }
    for (WorkId w : started_) await(w);
    for (const AwaitOf& a : work_.awaits) await(a.at);
    for (Beat& b : out_)
      if (RunPart* part = std::get_if<RunPart>(&b)) part->whole = is_whole(*part);
    return {std::move(out_), all.seconds, std::move(sent_), left};
  }

 private:
  // Takes what it leaves out of the order, from the end of the region on, as long as it fills no gap: the region is
  // shorter by all that it takes then.
  std::vector<RegionAt> leave(Interleaved& all, std::size_t most) {
    std::set<WorkId> gone;
    std::vector<RegionAt> left;
    for (std::size_t i = region_.size(); i-- > 0 && left.size() < most;) {
      const RegionAt at(i);
      const std::vector<WorkId> calls = calls_that_can_wait(at, gone);
      if (calls.empty()) continue;
      IdVector<WorkId, Work> without = work_.work;
      double takes = 0;
      for (WorkId w : calls) takes += std::exchange(without[w].seconds, 0);
      Interleaved rest = interleave(without);
      if (all.seconds - rest.seconds < 0.95 * takes) break;
      all = std::move(rest), work_.work = std::move(without);
      left.insert(left.begin(), at);
      gone.insert(calls.begin(), calls.end());
    }
    std::erase_if(all.order, [&](WorkId w) { return gone.contains(w); });
    return left;
  }
  // Weight gradients for which nothing else of the region waits.
  std::vector<WorkId> calls_that_can_wait(RegionAt at, const std::set<WorkId>& gone) const {
    const Run* r = run_of(region_[at.value]);
    if (!r || p_.task(*r).part != Part::W) return {};
    std::vector<WorkId> calls;
    for (WorkId w : work_.work.ids()) {
      const auto is_one = [&](WorkId before) { return work_.origins[before].at == at; };
      const std::vector<WorkId>& after = work_.work[w].after;
      if (is_one(w))
        calls.push_back(w);
      else if (!gone.contains(w) && std::any_of(after.begin(), after.end(), is_one))
        return {};
    }
    if (std::any_of(calls.begin(), calls.end(), [&](WorkId w) { return work_.work[w].link.has_value(); })) return {};
    return calls;
  }
  void put(WorkId w) {
    const Origin& o = work_.origins[w];
    if (!o.call) {
      out_.push_back(AsItWas{o.at});
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
  bool is_whole(const RunPart& part) const {
    const auto& calls = p_.calls[std::get<Run>(region_[part.at.value]).task]->calls;
    return part.calls.from == CallId(0) && part.calls.to == calls.next_id();
  }
  void await(const Flight& f) {
    match(
        f, [&](WorkId w) { await(w); }, [&](RegionAt at) { await(at); });
  }
  void await(WorkId w) {
    const Origin& o = work_.origins[w];
    if (!o.call) {
      if (const auto it = await_of_.find(w); it != await_of_.end()) await(it->second);
      return;
    }
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
  // An instruction of the region.
  void await(RegionAt at) {
    if (awaited_.insert(at).second) out_.push_back(AsItWas{at});
  }

  const Program& p_;
  const Region region_;
  RegionWork& work_;
  std::map<WorkId, RegionAt> await_of_;  // of its Start instructions; of others it comes after the region
  std::set<RegionAt> awaited_;
  std::vector<WorkId> started_;
  std::set<WorkId> done_;
  std::vector<Beat> out_;
  std::vector<std::pair<RegionAt, double>> sent_;
};

// Things as they appear, from 0 on. There are few, and what comes again was there not long ago.
template <class T>
class Numbers {
 public:
  u64 of(const T& x) {
    const auto known = std::find(all_.rbegin(), all_.rend(), x);
    if (known != all_.rend()) return u64(all_.rend() - known - 1);
    all_.push_back(x);
    return all_.size() - 1;
  }

 private:
  std::vector<T> all_;
};

class Likeness {
 public:
  Likeness(const Program& p, ActorId actor, const StartedRuns& runs) : p_(p), actor_(actor), runs_(runs) {}
  std::vector<u64> run(Region region) {
    key_.reserve(6 * region.size());
    for (const Instruction& i : region)
      match(
          i,
          [&](const Run& r) {
            add(0, r.task.value, r.microbatch);
            key_.push_back(turns_.of(turn_at(p_, actor_, i)));
          },
          [&](const Send& s) { message(1, s.transfer); }, [&](const Receive& r) { message(2, r.transfer); },
          [&](const Start& s) { add(3, s.run.task.value, s.run.microbatch, s.collective); },
          [&](const Await& w) { add(4, w.task.value, runs_[w.collective].microbatch, w.collective); });
    return std::move(key_);
  }

 private:
  // Of what goes once in a step there is one.
  void message(u64 kind, TransferId t) {
    if (const SentValue* v = p_.transfers[t].value())
      add(kind, v->value.value, v->microbatch);
    else
      add(kind + 4, t.value, MicrobatchId(0));
  }
  void add(u64 kind, u64 what, MicrobatchId m, std::optional<CollectiveId> c = {}) {
    key_.insert(key_.end(), {kind, what, microbatches_.of(m), p_.pipe_of[m].value, c ? collectives_.of(*c) : 0});
  }
  const Program& p_;
  const ActorId actor_;
  const StartedRuns& runs_;
  Numbers<std::optional<ActionId>> turns_;
  Numbers<MicrobatchId> microbatches_;
  Numbers<CollectiveId> collectives_;
  std::vector<u64> key_;
};

class Emission {
 public:
  Emission(Region region, ActorProgram& out) : region_(region), out_(out), code_(out.code) {}
  void run(const Recipe& recipe) {
    for (const Beat& b : recipe.beats)
      match(
          b, [&](const RunPart& x) { part(x); }, [&](const StartCall& x) { start(x); },
          [&](const AwaitCall& x) { await(x.started); },
          [&](const AsItWas& x) { code_.push_back(region_[x.at.value]); });
  }

 private:
  // An instruction is changed where it stands: what was just written bit by bit is slow to copy.
  void part(const RunPart& x) {
    code_.push_back(region_[x.at.value]);
    if (!x.whole) task_of(code_.back())->calls = x.calls;
  }
  void start(const StartCall& x) {
    const CollectiveId id(out_.collectives++);
    under_way_.push_back({x, id});
    code_.push_back(Start{std::get<Run>(region_[x.at.value]), id});
    task_of(code_.back())->calls = CallRange{x.call, next(x.call)};
  }
  void await(const StartCall& x) {
    const auto it =  // most are awaited soon
        std::find_if(under_way_.rbegin(), under_way_.rend(), [&](const auto& entry) { return entry.first == x; });
    code_.push_back(Await{it->second, std::get<Run>(region_[x.at.value]).task});
  }
  const Region region_;
  ActorProgram& out_;
  IdVector<InstructionId, Instruction>& code_;
  std::vector<std::pair<StartCall, CollectiveId>> under_way_;
};

// Collectives in place included.
double seconds_of(const Program& p, ActorId actor, const Run& r, WorkTimes& times) {
  const Calls& body = *p.calls[r.task];
  double seconds = 0;
  for (CallId c : ids(calls_of(r, body))) seconds += times.calls(body, actor)[c];
  return seconds;
}

}  // namespace

Recipe recipe_of(const Passage& passage, RegionWork& work, WorkTimes& times, std::size_t leaves) {
  return Cook(passage, work, times).run(leaves);
}

Recipe as_it_stands(const Passage& passage, WorkTimes& times) {
  Recipe recipe;
  for (RegionAt at : ids_until<RegionAt>(passage.region.size())) {
    const Instruction& i = passage.region[at.value];
    recipe.beats.push_back(AsItWas{at});
    match(
        i, [&](const Run& r) { recipe.seconds += seconds_of(passage.program, passage.actor, r, times); },
        [](const OneOf<Send, Receive, Start, Await> auto&) {});
    if (const auto late = passage.late.find(at); late != passage.late.end() && std::isfinite(late->second))
      recipe.seconds = std::max(recipe.seconds, late->second);
    if (sent_by(i)) recipe.sent.push_back({at, recipe.seconds});
  }
  return recipe;
}

std::vector<u64> likeness(const Program& p, ActorId actor, Region region, const StartedRuns& runs) {
  return Likeness(p, actor, runs).run(region);
}

void follow(const Recipe& recipe, Region region, ActorProgram& out) { Emission(region, out).run(recipe); }

}  // namespace stretto
