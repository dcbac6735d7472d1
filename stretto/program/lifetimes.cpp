#include "stretto/program/lifetimes.h"

#include <algorithm>
#include <unordered_map>

#include "stretto/program/persistent.h"
#include "stretto/program/touches.h"
#include "stretto/step/storage.h"

namespace stretto {
namespace {

// Something for every microbatch of those values or tasks that have it. What is touched together lies together: a
// microbatch's, in the order in which the first of them were touched.
template <class I, class T>
class PerInstance {
 public:
  PerInstance(const Program& p, std::size_t ids) : numbers_(ids, 0), all_(p.pipe_of.size()) {}
  std::optional<T>& at(I i, MicrobatchId m) {
    std::uint32_t& number = numbers_[i];
    if (number == 0) number = ++count_;
    if (all_[m].size() < number) all_[m].resize(count_);
    return all_[m][number - 1];
  }
  const T* find(I i, MicrobatchId m) const {
    const std::uint32_t number = numbers_[i];
    return number == 0 || all_[m].size() < number || !all_[m][number - 1] ? nullptr : &*all_[m][number - 1];
  }

 private:
  IdVector<I, std::uint32_t> numbers_;  // from 1 on; 0: it has none
  std::uint32_t count_ = 0;
  IdVector<MicrobatchId, std::vector<std::optional<T>>> all_;
};

class Walk {
 public:
  Walk(const Program& p, ActorId actor, Listed listed)
      : p_(p),
        s_(*p.step),
        actor_(actor),
        a_(p.actors[actor]),
        listed_(listed),
        known_(p, s_.values.size()),
        direct_(p, s_.values.size()),
        parts_(p, s_.tasks.size()) {
    touching_.resize(s_.tasks.size());
    gathered_.resize(s_.values.size()), newest_.resize(s_.values.size()), started_.resize(a_.collectives);
    set_clock();
    for (const Instruction& i : a_.code)
      if (const auto sent = sent_by(i)) {
        const Transfer& t = p_.transfers[*sent];
        if (t.direct) direct_.at(t.value()->value, t.value()->microbatch) = *sent;
      }
  }

  Lifetimes run() {
    for (InstructionId i : a_.code.ids()) {
      out_.home.push_back(i);
      match(
          a_.code[i], [&](const Run& r) { touch_all(r, i, std::nullopt); },
          [&](const Start& s) { touch_all(s.run, i, s.collective); }, [&](const Await& w) { await(w, i); },
          [&](const Send& s) { send(s.transfer, i); }, [&](const Receive& r) { receive(r.transfer, i); });
    }
    return std::move(out_);
  }

 private:
  void set_clock() {
    i64 now = 0;
    std::size_t most = 0;  // buffers, values counted at each use
    for (const Instruction& i : a_.code) {
      out_.clock.push_back(now);
      const Run* r = task_of(i);
      if (!r) {
        ++now;
        continue;
      }
      const Calls& body = *p_.calls[r->task];
      const CallRange calls = calls_of(*r, body);
      now += std::max<i64>(1, i64{calls.to.value} - calls.from.value);
      most += listed_ == Listed::all ? body.buffers.size() : p_.task(*r).outputs.size();
    }
    out_.clock.push_back(now);
    out_.buffers.reserve(most);
    if (listed_ == Listed::all) out_.uses.reserve(most);
  }

  // The parts of a run share arguments and temporaries.
  struct Parts {
    InstructionId home;           // the first
    std::size_t temporaries = 0;  // where they begin
  };
  const Parts& parts_of(const Run& r, InstructionId i) {
    std::optional<Parts>& parts = parts_.at(r.task, r.microbatch);
    if (!parts) {
      parts = Parts{i, temporaries_.size()};
      temporaries_.resize(temporaries_.size() + p_.calls[r.task]->buffers.size());
    }
    out_.home[i] = parts->home;
    return *parts;
  }

  // What calls of a body touch that may lie in the arena of activations, and from when to when, counted from the first
  // of them. A task runs once per microbatch, so it is found once.
  struct Touching {
    BufferId buffer;
    u64 bytes = 0;
    i64 first = 0, last = 0;
    const Binding* where = nullptr;  // null: a temporary
    bool result = false, gathered = false;
  };
  struct TouchingOfCalls {
    std::optional<CallRange> calls;  // none: of a run that is not in parts
    std::vector<Touching> all;
  };
  const std::vector<Touching>& touching(const Run& r) {
    for (const TouchingOfCalls& t : touching_[r.task])
      if (t.calls == r.calls) return t.all;
    const Calls& body = *p_.calls[r.task];
    const CallRange range = calls_of(r, body);
    const IdVector<BufferId, Touched> part = r.calls ? touched_in(body, range) : IdVector<BufferId, Touched>();
    std::vector<Touching> all;
    for (BufferId b : body.buffers.ids()) {
      const BodyBuffer& buffer = body.buffers[b];
      const Touched touched = r.calls ? part[b] : buffer.touched;
      if (!touched || (buffer.temporary() && !r.calls && listed_ == Listed::values)) continue;
      const Binding* where = binding_of(p_, r, b);
      const ValueId* value = where ? as<ValueId>(*where) : nullptr;
      if (where && !value && !as<AccumulatorId>(*where)) continue;
      const i64 from = range.from.value;
      all.push_back({b, buffer.bytes, touched->first.value - from, touched->last.value - from, where,
                     buffer.result() != nullptr, value && gathered(s_, *value)});
    }
    touching_[r.task].push_back({r.calls, std::move(all)});
    return touching_[r.task].back().all;
  }
  // What some of a body's calls touch. They need not run in the body's order.
  using Touched = std::optional<BodyBuffer::Touched>;
  static IdVector<BufferId, Touched> touched_in(const Calls& body, CallRange range) {
    IdVector<BufferId, Touched> all(body.buffers.size());
    for (CallId c : ids(range))
      for (const auto* refs : {&body.calls[c].in, &body.calls[c].out})
        for (const Ref& x : *refs)
          if (x.buffer) all[*x.buffer] = {all[*x.buffer].value_or(BodyBuffer::Touched{c, c}).first, c};
    return all;
  }

  void touch_all(const Run& r, InstructionId i, std::optional<CollectiveId> started) {
    const Parts* parts = r.calls ? &parts_of(r, i) : nullptr;
    if (started) started_[*started].from = in_flight_.size();
    for (const Touching& t : touching(r)) {
      const std::optional<LiveId> id = find(r, i, parts, t, started);
      if (!id) continue;
      LiveBuffer& live = out_.buffers[*id];
      live.last = std::max(live.last, out_.clock[i] + t.last);
      if (listed_ == Listed::all) live.microbatch = r.microbatch, live.run = live.read = i;
      if (started) in_flight_.push_back(*id);
    }
    if (started) started_[*started].to = in_flight_.size();
  }

  // Which live buffer a run's buffer is; none: it does not lie in the arena of activations.
  std::optional<LiveId> find(const Run& r, InstructionId i, const Parts* parts, const Touching& t,
                             std::optional<CollectiveId> started) {
    const BufferUse use{out_.home[i], t.buffer};
    const i64 first = out_.clock[i] + t.first;
    if (!t.where) {
      std::optional<LiveId>* known = parts ? &temporaries_[parts->temporaries + t.buffer.value] : nullptr;
      if (known && *known) return *known;
      const LiveId id = add(t.bytes, first, i);
      if (known) *known = id;
      used(id, use);
      return id;
    }
    const ValueId* value = as<ValueId>(*t.where);
    if (!value) {
      const Binding where = bound(p_, r, *t.where);
      if (!visits(p_, actor_, where)) return {};
      const LiveId id = visiting_.at(std::get<AccumulatorId>(where));
      out_.buffers[id].read = i;
      used(id, use);
      return id;
    }
    if (t.result && !t.gathered)
      if (const TransferId* transfer = direct_.find(*value, r.microbatch)) {
        out_.elsewhere.push_back({use, *transfer});
        return {};
      }
    const LiveId id = t.gathered
                          ? touch_gathered(*value, t.result ? *started : newest_[*value].value(), t.bytes, first, i)
                          : touch(*value, r.microbatch, t.bytes, first, i);
    used(id, use);
    return id;
  }
  void used(LiveId id, BufferUse use) {
    if (listed_ == Listed::all) out_.uses.push_back({id, use});
  }

  LiveId add(u64 bytes, i64 first, InstructionId i, std::optional<ValueId> value = {}) {
    return out_.buffers.push_back(
        {.bytes = bytes, .first = first, .last = first, .value = value, .made = i, .read = i});
  }
  LiveId touch(ValueId v, MicrobatchId m, u64 bytes, i64 first, InstructionId i) {
    std::optional<LiveId>& known = known_.at(v, m);
    if (!known) known = add(bytes, first, i, v);
    out_.buffers[*known].read = i;
    return *known;
  }
  // A parameter, by one gather.
  LiveId touch_gathered(ValueId v, CollectiveId by, u64 bytes, i64 first, InstructionId i) {
    auto& all = gathered_[v];
    auto known = std::find_if(all.rbegin(), all.rend(), [&](const auto& x) { return x.first == by; });
    if (known == all.rend()) all.push_back({by, add(bytes, first, i, v)}), known = all.rbegin();
    out_.buffers[known->second].read = i;
    return known->second;
  }

  void await(const Await& w, InstructionId i) {
    for (const Binding& b : s_.tasks[w.task].outputs)
      if (const ValueId* v = as<ValueId>(b)) newest_[*v] = w.collective;
    for (std::size_t k = started_[w.collective].from; k < started_[w.collective].to; ++k) {
      LiveBuffer& b = out_.buffers[in_flight_[k]];
      b.last = std::max(b.last, out_.clock[i]);
    }
  }

  // A value lives on its sender until it is sent, unless it is made in the receiver's memory, and on its receiver from
  // the moment at which it can be written.
  void send(TransferId id, InstructionId i) {
    const Transfer& t = p_.transfers[id];
    if (!t.value() || t.direct) return;
    const LiveId live = touch(t.value()->value, t.value()->microbatch, t.extents[0].bytes, out_.clock[i], i);
    LiveBuffer& b = out_.buffers[live];
    b.last = std::max({b.last, out_.clock[i], t.released ? out_.clock[*t.released] - 1 : 0});
    out_.ends.push_back({live, {id, true}});
  }
  void receive(TransferId id, InstructionId i) {
    const Transfer& t = p_.transfers[id];
    const AccumulatorId* gradient = std::get_if<AccumulatorId>(&t.what);
    if (!t.value() && !gradient) return;
    LiveId live;
    if (gradient) {
      live = visiting_[*gradient] = add(t.extents[0].bytes, out_.clock[t.posted], i);
    } else {
      live = touch(t.value()->value, t.value()->microbatch, t.extents[0].bytes, out_.clock[t.posted], i);
      out_.buffers[live].microbatch = t.value()->microbatch;
    }
    LiveBuffer& b = out_.buffers[live];
    b.last = std::max(b.last, out_.clock[i]);
    b.received = out_.clock[i];
    out_.ends.push_back({live, {id, false}});
  }

  const Program& p_;
  const Step& s_;
  const ActorId actor_;
  const ActorProgram& a_;
  const Listed listed_;
  Lifetimes out_;
  IdVector<TaskId, std::vector<TouchingOfCalls>> touching_;
  std::unordered_map<AccumulatorId, LiveId> visiting_;
  PerInstance<ValueId, LiveId> known_;
  PerInstance<ValueId, TransferId> direct_;                                   // made in the memory of whoever reads it
  IdVector<ValueId, std::vector<std::pair<CollectiveId, LiveId>>> gathered_;  // parameters, by each gather
  IdVector<ValueId, std::optional<CollectiveId>> newest_;                     // ... and the one awaited last
  struct InFlight {
    std::size_t from = 0, to = 0;
  };
  IdVector<CollectiveId, InFlight> started_;  // what it touches, in `in_flight_`
  std::vector<LiveId> in_flight_;
  PerInstance<TaskId, Parts> parts_;                // of runs in parts
  std::vector<std::optional<LiveId>> temporaries_;  // ... and theirs
};

}  // namespace

Lifetimes lifetimes(const Program& p, ActorId actor, Listed listed) { return Walk(p, actor, listed).run(); }

}  // namespace stretto
