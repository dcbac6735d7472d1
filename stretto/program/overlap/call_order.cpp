#include "stretto/program/overlap/call_order.h"

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

class CallOrdering {
 public:
  CallOrdering(const RegionAsItComes& region, RegionWork& work, WorkTimes& times)
      : p_(region.program), region_(region.region), work_(work) {
    set_times(work_, p_, region.actor, region_, times);
    for (const AwaitOf& a : work_.awaits)
      if (a.started) await_of_[*a.started] = a.at;
    double all = 0;  // no work that waits for nothing ends later
    for (const Work& w : work_.work) all += w.seconds;
    for (const auto& [at, late] : region.late)
      if (std::isfinite(late)) all += late;
    for (WorkId w : work_.work.ids()) {
      const RegionAt at = work_.origins[w].at;
      const auto late = region.late.find(at);
      work_.work[w].ready = late == region.late.end() ? 0 : std::min(late->second, all);
      const std::optional<ActionId> turn = turn_at(p_, region.actor, region_[at.value]);
      work_.work[w].turn = turn ? turn->value : 0;
    }
  }

  CallOrder run(std::size_t leaves) {
    Interleaved all = interleave(work_.work);
    const std::vector<RegionAt> left = leave(all, leaves);
    for (WorkId w : all.order) {
      for (const Flight& f : work_.needs[w]) await(f);
      put(w);
      if (work_.work[w].urgent && !work_.origins[w].call) sent_.push_back({work_.origins[w].at, all.ends[w]});
    }
    for (WorkId w : started_) await(w);
    for (const AwaitOf& a : work_.awaits) await(a.at);
    for (OrderedCall& b : out_)
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
  std::vector<OrderedCall> out_;
  std::vector<std::pair<RegionAt, double>> sent_;
};

class Rewriting {
 public:
  Rewriting(Region region, CollectiveId next) : region_(region), next_(next) {}
  std::vector<Instruction> run(const CallOrder& order) {
    for (const OrderedCall& c : order.calls)
      match(
          c, [&](const RunPart& x) { part(x); }, [&](const StartCall& x) { start(x); },
          [&](const AwaitCall& x) { await(x.started); },
          [&](const AsItWas& x) { code_.push_back(region_[x.at.value]); });
    return std::move(code_);
  }

 private:
  void part(const RunPart& x) {
    code_.push_back(region_[x.at.value]);
    if (!x.whole) task_of(code_.back())->calls = x.calls;
  }
  void start(const StartCall& x) {
    under_way_.push_back({x, next_});
    code_.push_back(Start{std::get<Run>(region_[x.at.value]), next_});
    task_of(code_.back())->calls = CallRange{x.call, next(x.call)};
    ++next_.value;
  }
  void await(const StartCall& x) {
    const auto it =  // most are awaited soon
        std::find_if(under_way_.rbegin(), under_way_.rend(), [&](const auto& entry) { return entry.first == x; });
    code_.push_back(Await{it->second, std::get<Run>(region_[x.at.value]).task});
  }
  const Region region_;
  CollectiveId next_;
  std::vector<Instruction> code_;
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

CallOrder order_calls(const RegionAsItComes& region, RegionWork& work, WorkTimes& times, std::size_t leaves) {
  return CallOrdering(region, work, times).run(leaves);
}

CallOrder as_it_stands(const RegionAsItComes& x, WorkTimes& times) {
  CallOrder order;
  for (RegionAt at : ids_until<RegionAt>(x.region.size())) {
    const Instruction& i = x.region[at.value];
    order.calls.push_back(AsItWas{at});
    match(
        i, [&](const Run& r) { order.seconds += seconds_of(x.program, x.actor, r, times); },
        [](const OneOf<Send, Receive, Start, Await> auto&) {});
    if (const auto late = x.late.find(at); late != x.late.end() && std::isfinite(late->second))
      order.seconds = std::max(order.seconds, late->second);
    if (sent_by(i)) order.sent.push_back({at, order.seconds});
  }
  return order;
}

std::vector<Instruction> in_order(const CallOrder& order, Region region, CollectiveId next) {
  return Rewriting(region, next).run(order);
}

}  // namespace stretto
