#include "stretto/program/overlap/region.h"

#include <algorithm>
#include <unordered_map>

#include "stretto/base/hash.h"
#include "stretto/base/match.h"
#include "stretto/program/lanes.h"
#include "stretto/program/memory/persistent.h"
#include "stretto/program/emit/touches.h"
#include "stretto/step/storage.h"

namespace stretto {
namespace {

const Op& op_of(const Calls& body, CallId c) { return *body.graph.node(body.calls[c].node).op; }

// What two instructions may both touch: what a binding means, or the room at an actor (room.h). Flat: very many are
// looked up.
struct Resource {
  std::size_t kind;
  u64 number;
  MicrobatchId microbatch{0};
  bool operator==(const Resource&) const = default;
};
struct HashOfResource {
  std::size_t operator()(const Resource& r) const { return hash_of(r.kind, r.number, r.microbatch.value); }
};
u64 number_of(const Binding& b) {
  return match(
      b, [](AllMicrobatches x) -> u64 { return x.output.value; },
      [](StateId x) -> u64 { return u64{x.param.value} << 8 | x.which; }, [](AllSquares) -> u64 { return 0; },
      [](OneOf<ValueId, ParamId, InputId, ScalarId, AccumulatorId, BucketId, OutputId, SquareId> auto x) -> u64 {
        return x.value;
      });
}
Resource room_at(ActorId actor) { return {std::variant_size_v<Binding>, actor.value}; }

// Who touched it last, and which of its bytes.
struct Toucher {
  WorkId work;
  const ByteSpans* spans;
};
struct LastTouches {
  std::vector<Toucher> writers;         // the last ones; of a gathered parameter also the readers of what it replaced
  std::vector<Toucher> readers;         // since
  std::optional<RegionAt> before = {};  // written by a collective that started before the region: its Await
};

class WorkBuilder {
 public:
  WorkBuilder(const Program& p, Region region, const StartedRuns& runs, CallFacts& facts, bool apart)
      : p_(p), s_(*p.step), region_(region), runs_(runs), apart_(apart), facts_(facts) {}

  RegionWork run() {
    for (RegionAt at : ids_until<RegionAt>(region_.size()))
      match(
          region_[at.value], [&](const Run& r) { run(r, at); }, [&](const Start& s) { start(s, at); },
          [&](const Await& w) { await(w, at); }, [&](const Send& s) { send(s.transfer, at); },
          [&](const Receive& r) { receive(r.transfer, at); });
    return std::move(out_);
  }

 private:
  WorkId add(Work w, Origin o) {
    out_.work.push_back(std::move(w));
    out_.origins.push_back(o);
    return out_.needs.push_back({});
  }
  // What is in flight when `w` comes after it has to be awaited.
  void come_after(WorkId w, WorkId before) {
    if (before == w) return;
    std::vector<WorkId>& after = out_.work[w].after;
    if (std::find(after.begin(), after.end(), before) != after.end()) return;
    after.push_back(before);
    if (out_.work[before].link) out_.needs[w].push_back(before);
  }
  void come_after(WorkId w, std::span<const WorkId> all) {
    for (WorkId before : all) come_after(w, before);
  }
  void come_after(WorkId w, const std::vector<Toucher>& all, const ByteSpans& spans) {
    for (const Toucher& t : all)
      if (meet(*t.spans, spans)) come_after(w, t.work);
  }
  void reads(WorkId w, LastTouches& t, const ByteSpans& spans = everything) {
    come_after(w, t.writers, spans);
    if (t.before) out_.needs[w].push_back(*t.before);
    t.readers.push_back({w, &spans});
  }
  void writes(WorkId w, LastTouches& t, const ByteSpans& spans = everything) {
    come_after(w, t.writers, spans);
    come_after(w, t.readers, spans);
    if (t.before) out_.needs[w].push_back(*t.before);
    const auto replaced = [&](const Toucher& x) { return covers(spans, *x.spans); };
    std::erase_if(t.writers, replaced);
    std::erase_if(t.readers, replaced);
    t.writers.push_back({w, &spans});
  }

  std::uint32_t link(Part part, const std::vector<std::string>& axes) {
    return links_.try_emplace({lane_of(part), axes}, links_.size()).first->second;
  }

  struct Begun {
    WorkId first;           // of its calls
    std::size_t additions;  // of added_: the first call of the newest W comes after so many
  };
  void run(const Run& r, RegionAt at) {
    const Calls& body = *p_.calls[r.task];
    const Part part = p_.task(r).part;
    const bool of_weights = part == Part::W || part == Part::A;
    std::optional<WorkId> first;
    std::optional<Begun> none;
    std::optional<Begun>& before = r.action ? begun_[{*r.action, of_weights}] : none;
    const std::size_t waited_for = before ? before->additions : 0;
    const auto& facts = facts_.of(body);
    Buffers buffers(body.buffers.size());
    for (CallId c : ids(calls_of(r, body))) {
      const WorkId id = add({}, {at, c});
      if (op_of(body, c).collective) out_.work[id].link = link(part, facts[c].axes);
      if (before) come_after(id, before->first);
      if (!first && !out_.work[id].link) first = id;
      touch(id, r, buffers, body.calls[c], facts[c]);
      if (apart_) out_.work[id].urgent = for_other_stages(r, body.calls[c]);
      // The whole gradients of at most two pieces exist at a time.
      if (part == Part::W) come_after(id, std::span(added_).subspan(waited_for));
      if (part == Part::A) added_.push_back(id);
      last_run_ = id;
    }
    if (first) before = {*first, part == Part::W ? added_.size() : waited_for};
  }
  bool for_other_stages(const Run& r, const KernelCall& c) const {
    for (const Ref& x : c.out) {
      const Binding* b = x.buffer ? binding_of(p_, r, *x.buffer) : nullptr;
      const ValueId* v = b ? as<ValueId>(*b) : nullptr;
      if (!v) continue;
      for (TaskId reader : s_.values[*v].consumers)
        if (const auto& piece = s_.tasks[reader].piece; piece && p_.stage_of[*piece] != p_.stage_of[*p_.task(r).piece])
          return true;
    }
    return false;
  }
  // What a run's buffers are, found once. Its temporaries are its own.
  struct Buffers {
    explicit Buffers(std::size_t n) : touches(n, nullptr), temporaries(n) {}
    IdVector<BufferId, LastTouches*> touches;
    IdVector<BufferId, LastTouches> temporaries;
  };
  void touch(WorkId w, const Run& r, Buffers& buffers, const KernelCall& c, const CallFacts::OfCall& facts) {
    for (std::size_t i = 0; i < c.in.size(); ++i)
      if (c.in[i].buffer) reads(w, touches(r, buffers, *c.in[i].buffer), facts.in[i]);
    for (std::size_t i = 0; i < c.out.size(); ++i)
      if (c.out[i].buffer) writes(w, touches(r, buffers, *c.out[i].buffer), facts.out[i]);
  }
  LastTouches& touches(const Run& r, Buffers& buffers, BufferId b) {
    LastTouches*& found = buffers.touches[b];
    if (!found) {
      const Binding* x = binding_of(p_, r, b);
      found = x ? &touched_[resource(bound(p_, r, *x), r.microbatch)] : &buffers.temporaries[b];
    }
    return *found;
  }
  // A value or an output is one per microbatch; of a gathered parameter the newest counts.
  Resource resource(const Binding& x, MicrobatchId m) const {
    const ValueId* v = as<ValueId>(x);
    const bool each = v ? !gathered(s_, *v) : as<OutputId>(x) != nullptr;
    return {x.index(), number_of(x), each ? m : MicrobatchId(0)};
  }

  // Sums of gradients, gathers and reduce-scatters of storage. A gather does not start earlier than it did: what it
  // makes takes memory.
  void start(const Start& s, RegionAt at) {
    const Task& t = p_.task(s.run);
    const Calls& body = *p_.calls[s.run.task];
    const WorkId id = add({}, {at});
    for (CallId c : ids(calls_of(s.run, body))) out_.work[id].link = link(t.part, facts_.of(body)[c].axes);
    if (t.part == Part::U && last_run_) out_.work[id].after.push_back(*last_run_);
    for (const Binding& b : t.inputs) each_resource(s.run, b, [&](const Resource& n) { reads(id, touched_[n]); });
    if (t.part == Part::sum)
      for (const Binding& b : t.outputs) each_resource(s.run, b, [&](const Resource& n) { writes(id, touched_[n]); });
    started_[s.collective] = id;
  }
  template <class F>
  void each_resource(const Run& r, const Binding& b, F f) const {
    if (const BucketId* bucket = as<BucketId>(b))
      for (AccumulatorId g : s_.buckets[*bucket].accumulators) f(resource(g, r.microbatch));
    else
      f(resource(bound(p_, r, b), r.microbatch));
  }
  // From here on its results are the newest. Their readers come after the readers of what they replace.
  void await(const Await& w, RegionAt at) {
    const auto here = started_.find(w.collective);
    out_.awaits.push_back({at, here == started_.end() ? std::nullopt : std::optional(here->second)});
    for (const Binding& b : s_.tasks[w.task].outputs) {
      const ValueId* v = as<ValueId>(b);
      if (!v) continue;
      LastTouches& t = touched_[resource(*v, runs_[w.collective].microbatch)];
      std::vector<Toucher> before = std::move(t.readers);
      t = {};
      t.writers = std::move(before);
      if (here != started_.end())
        t.writers.push_back({here->second, &everything});
      else
        t.before = at;
    }
  }
  void send(TransferId id, RegionAt at) {
    const Transfer& t = p_.transfers[id];
    const WorkId w = add({.urgent = true}, {at});
    if (std::holds_alternative<SentWord>(t.what))  // there is room when all that stands before it is done
      for (WorkId before : ids_until<WorkId>(w.value)) come_after(w, before);
    else if (t.direct)  // it lies with the receiver, whose it is from then on: its own task has read it
      writes(w, touched_[carried(t)]);
    else
      reads(w, touched_[carried(t)]);
    if (const AccumulatorId* g = std::get_if<AccumulatorId>(&t.what)) {
      reads(w, touched_[room_at(p_.routes[t.route].target)]);
      if (const auto task = combine_of(*g)) out_.combines[w] = *task;
    }
  }
  void receive(TransferId id, RegionAt at) {
    const Transfer& t = p_.transfers[id];
    const WorkId w = add({}, {at});
    if (std::holds_alternative<SentWord>(t.what))
      writes(w, touched_[room_at(p_.routes[t.route].source)]);
    else
      writes(w, touched_[carried(t)]);
  }
  // Who adds it up with those of other actors, and over ranks.
  std::optional<TaskId> combine_of(AccumulatorId g) {
    if (combines_.empty())
      for (TaskId task : s_.tasks.ids())
        if (const Task& t = s_.tasks[task]; t.part == Part::combine)
          for (const Binding& b : t.inputs)
            if (const AccumulatorId* x = as<AccumulatorId>(b)) combines_[*x] = task;
    const auto it = combines_.find(g);
    return it == combines_.end() ? std::nullopt : std::optional(it->second);
  }
  Resource carried(const Transfer& t) const {
    if (const AccumulatorId* g = std::get_if<AccumulatorId>(&t.what)) return resource(*g, MicrobatchId(0));
    return resource(t.value()->value, t.value()->microbatch);
  }

  const Program& p_;
  const Step& s_;
  const Region region_;
  const StartedRuns& runs_;
  const bool apart_;
  RegionWork out_;
  CallFacts& facts_;
  std::map<CollectiveId, WorkId> started_;  // the region's own Start instructions
  std::unordered_map<Resource, LastTouches, HashOfResource> touched_;
  std::map<std::pair<DeviceLane, std::vector<std::string>>, std::uint32_t> links_;
  // Per action, of tasks that make or add up weight gradients and of the others: the newest. Nothing of a task begins
  // before the task before it has: what is made ahead takes memory.
  std::map<std::pair<ActionId, bool>, std::optional<Begun>> begun_;
  std::vector<WorkId> added_;  // the additions of gradients so far
  std::optional<WorkId> last_run_;
  std::map<AccumulatorId, TaskId> combines_;  // found once
};

}  // namespace

RegionWork work_of(const Program& p, Region region, const StartedRuns& runs, CallFacts& facts, bool apart) {
  return WorkBuilder(p, region, runs, facts, apart).run();
}

void set_times(RegionWork& all, const Program& p, ActorId actor, Region region, WorkTimes& times) {
  for (WorkId w : all.work.ids()) {
    const Origin& o = all.origins[w];
    Work& work = all.work[w];
    work.seconds = work.then = 0;
    const Run* r = task_of(region[o.at.value]);
    if (!r) continue;
    const Calls& body = *p.calls[r->task];
    const auto& seconds = times.calls(body, actor);
    for (CallId c : ids(o.call ? CallRange{*o.call, CallId(o.call->value + 1)} : calls_of(*r, body)))
      work.seconds += seconds[c];
  }
  for (const auto& [w, task] : all.combines) {
    const Calls& body = *p.calls[task];
    for (CallId c : body.calls.ids())
      if (op_of(body, c).collective) all.work[w].then += times.calls(body, actor)[c];
  }
}

}  // namespace stretto
