#include "stretto/program/memory/lifetimes.h"

#include <algorithm>
#include <unordered_map>

#include "stretto/program/memory/persistent.h"
#include "stretto/program/emit/touches.h"
#include "stretto/step/storage.h"

namespace stretto {
namespace {

// Something for every microbatch of those values or tasks that have it. What is touched together lies together: a
// microbatch's, in the order in which the first of them were touched.
template <class I, class T>
class PerInstance {
 public:
  PerInstance(const Program& p, std::size_t ids) : numbers_(ids, 0), all_(p.pipe_of.size()) {}
  // What it is found by: to look it up costs more than to use it.
  using Number = std::uint32_t;
  Number number(I i) {
    if (numbers_[i] == 0) numbers_[i] = ++count_;
    return numbers_[i];
  }
  std::optional<T>& at(Number number, MicrobatchId m) {
    if (all_[m].size() < number) all_[m].resize(count_);
    return all_[m][number - 1];
  }
  std::optional<T>& at(I i, MicrobatchId m) { return at(number(i), m); }
  const T* find(I i, MicrobatchId m) const {
    const Number number = numbers_[i];
    return number == 0 || all_[m].size() < number || !all_[m][number - 1] ? nullptr : &*all_[m][number - 1];
  }

 private:
  IdVector<I, Number> numbers_;  // from 1 on; 0: it has none
  Number count_ = 0;
  IdVector<MicrobatchId, std::vector<std::optional<T>>> all_;
};

class Walk {
 public:
  // `uses`: all buffers, with who uses them; else only when those of values, and of runs in parts, are alive.
  Walk(const Program& p, ActorId actor, bool uses)
      : p_(p),
        s_(*p.step),
        actor_(actor),
        a_(p.actors[actor]),
        uses_(uses),
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
    walk();
    for (LiveId id : lives_.ids()) {
      LiveBuffer& b = out_.buffers[id];
      b.bytes = lives_[id].bytes, b.first = lives_[id].first, b.last = lives_[id].last;
    }
    return std::move(out_);
  }
  IdVector<LiveId, Lifetime> lives() {
    walk();
    return std::move(lives_);
  }

 private:
  void walk() {
    for (InstructionId i : a_.code.ids()) {
      out_.home.push_back(i);
      match(
          a_.code[i], [&](const Run& r) { touch_all(r, i, nullptr); },
          [&](const Start& s) { touch_all(s.run, i, &s.collective); }, [&](const Await& w) { await(w, i); },
          [&](const Send& s) { send(s.transfer, i); }, [&](const Receive& r) { receive(r.transfer, i); });
    }
  }
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
      most += uses_ ? body.buffers.size() : p_.task(*r).outputs.size();
    }
    out_.clock.push_back(now);
    lives_.reserve(most);
    if (uses_) out_.buffers.reserve(most), out_.uses.reserve(most);
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
    const Binding* where = nullptr;     // null: a temporary
    std::optional<ValueId> value = {};  // that this is
    PerInstance<ValueId, LiveId>::Number number = 0;
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
      if (!touched || (buffer.temporary() && !r.calls && !uses_)) continue;
      const Binding* where = binding_of(p_, r, b);
      const ValueId* value = where ? as<ValueId>(*where) : nullptr;
      if (where && !value && !as<AccumulatorId>(*where)) continue;
      const i64 from = range.from.value;
      Touching t{b, buffer.bytes, touched->first.value - from, touched->last.value - from, where};
      t.result = buffer.result() != nullptr;
      if (value) t.value = *value, t.number = known_.number(*value), t.gathered = gathered(s_, *value);
      all.push_back(t);
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

  // `started`: none, a run that is waited for in place.
  void touch_all(const Run& r, InstructionId i, const CollectiveId* started) {
    const Parts* parts = r.calls ? &parts_of(r, i) : nullptr;
    if (started) started_[*started].from = in_flight_.size();
    for (const Touching& t : touching(r)) touch(t, r, i, parts, started);
    if (started) started_[*started].to = in_flight_.size();
  }
  // Not what does not lie in the arena of activations.
  void touch(const Touching& t, const Run& r, InstructionId i, const Parts* parts, const CollectiveId* started) {
    const i64 first = out_.clock[i] + t.first;
    const auto live = [&](LiveId id) {
      i64& last = lives_[id].last;
      last = std::max(last, out_.clock[i] + t.last);
      if (uses_) use(id, {out_.home[i], t.buffer}, r, i);
      if (started) in_flight_.push_back(id);
    };
    if (!t.where) return live(parts ? temporary(t, *parts, first, i) : add(t.bytes, first, i));
    if (!t.value) {
      const Binding where = bound(p_, r, *t.where);
      if (visits(p_, actor_, where)) live(visiting_.at(std::get<AccumulatorId>(where)));
      return;
    }
    if (t.gathered)
      return live(of_gather(*t.value, t.result ? *started : newest_[*t.value].value(), t.bytes, first, i));
    const TransferId* transfer = t.result ? direct_.find(*t.value, r.microbatch) : nullptr;
    if (transfer)
      out_.elsewhere.push_back({{out_.home[i], t.buffer}, *transfer});
    else
      live(of_value(*t.value, t.number, r.microbatch, t.bytes, first, i));
  }
  void use(LiveId id, BufferUse by, const Run& r, InstructionId i) {
    LiveBuffer& b = out_.buffers[id];
    b.microbatch = r.microbatch, b.run = b.read = i;
    out_.uses.push_back({id, by});
  }

  LiveId add(u64 bytes, i64 first, InstructionId i, std::optional<ValueId> value = {}) {
    if (uses_) out_.buffers.push_back({.value = value, .made = i, .read = i});
    return lives_.push_back({bytes, first, first});
  }
  LiveId temporary(const Touching& t, const Parts& parts, i64 first, InstructionId i) {
    std::optional<LiveId>& known = temporaries_[parts.temporaries + t.buffer.value];
    if (!known) known = add(t.bytes, first, i);
    return *known;
  }
  LiveId of_value(ValueId v, std::uint32_t number, MicrobatchId m, u64 bytes, i64 first, InstructionId i) {
    std::optional<LiveId>& known = known_.at(number, m);
    if (!known) known = add(bytes, first, i, v);
    return *known;
  }
  // A parameter, by one gather.
  LiveId of_gather(ValueId v, CollectiveId by, u64 bytes, i64 first, InstructionId i) {
    auto& all = gathered_[v];
    auto known = std::find_if(all.rbegin(), all.rend(), [&](const auto& x) { return x.first == by; });
    if (known == all.rend()) all.push_back({by, add(bytes, first, i, v)}), known = all.rbegin();
    return known->second;
  }
  void touch(LiveId id, const Transfer& t, InstructionId i, MessageEnd end, i64 until) {
    lives_[id].last = std::max(lives_[id].last, until);
    if (!uses_) return;
    LiveBuffer& b = out_.buffers[id];
    b.read = i;
    if (!end.sending) b.received = out_.clock[i];
    if (const SentValue* v = t.value(); v && !end.sending) b.microbatch = v->microbatch;
    out_.ends.push_back({id, end});
  }

  void await(const Await& w, InstructionId i) {
    for (const Binding& b : s_.tasks[w.task].outputs)
      if (const ValueId* v = as<ValueId>(b)) newest_[*v] = w.collective;
    for (std::size_t k = started_[w.collective].from; k < started_[w.collective].to; ++k) {
      i64& last = lives_[in_flight_[k]].last;
      last = std::max(last, out_.clock[i]);
    }
  }

  // A value lives on its sender until it is sent, unless it is made in the receiver's memory, and on its receiver from
  // the moment at which it can be written.
  void send(TransferId transfer, InstructionId i) {
    const Transfer& t = p_.transfers[transfer];
    if (!t.value() || t.direct) return;
    const LiveId id = of_message(t, out_.clock[i], i);
    const i64 kept = t.released ? out_.clock[*t.released] - 1 : 0;
    touch(id, t, i, {transfer, true}, std::max(out_.clock[i], kept));
  }
  void receive(TransferId transfer, InstructionId i) {
    const Transfer& t = p_.transfers[transfer];
    const AccumulatorId* gradient = std::get_if<AccumulatorId>(&t.what);
    if (!t.value() && !gradient) return;
    const i64 first = out_.clock[t.posted];
    const LiveId id = gradient ? visiting_[*gradient] = add(t.extents[0].bytes, first, i) : of_message(t, first, i);
    touch(id, t, i, {transfer, false}, out_.clock[i]);
  }
  LiveId of_message(const Transfer& t, i64 first, InstructionId i) {
    const auto [value, microbatch] = *t.value();
    return of_value(value, known_.number(value), microbatch, t.extents[0].bytes, first, i);
  }

  const Program& p_;
  const Step& s_;
  const ActorId actor_;
  const ActorProgram& a_;
  const bool uses_;
  Lifetimes out_;
  IdVector<LiveId, Lifetime> lives_;
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

Lifetimes lifetimes(const Program& p, ActorId actor) { return Walk(p, actor, true).run(); }

IdVector<LiveId, Lifetime> lives_of_values(const Program& p, ActorId actor) { return Walk(p, actor, false).lives(); }

}  // namespace stretto
