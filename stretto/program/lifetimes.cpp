#include "stretto/program/lifetimes.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "stretto/program/persistent.h"
#include "stretto/program/touches.h"
#include "stretto/step/storage.h"

namespace stretto {
namespace {

// A value as it is made once: of one microbatch, or, a gathered parameter, by one gather.
struct Instance {
  ValueId value;
  std::variant<MicrobatchId, CollectiveId> of;
  bool operator==(const Instance&) const = default;
};
struct InstanceHash {
  std::size_t operator()(const Instance& i) const {
    const u64 which = match(i.of, [](auto id) -> u64 { return id.value; });
    return std::hash<u64>{}((u64(i.value.value) << 32) | which);
  }
};

class Walk {
 public:
  Walk(const Program& p, ActorId actor) : p_(p), s_(*p.step), actor_(actor), a_(p.actors[actor]) {
    set_clock();
    for (const Instruction& i : a_.code)
      if (const auto sent = sent_by(i)) {
        const Transfer& t = p_.transfers[*sent];
        if (t.direct) direct_[{t.value()->value, t.value()->microbatch}] = *sent;
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
      most += body.buffers.size();
    }
    out_.clock.push_back(now);
    out_.buffers.reserve(most);
    out_.uses.reserve(most);
  }

  // The parts of a run share arguments and temporaries.
  InstructionId home_of(const Run& r, InstructionId i) {
    if (!r.calls) return i;
    return out_.home[i] = parts_.try_emplace({r.task, r.microbatch}, i).first->second;
  }

  void touch_all(const Run& r, InstructionId i, std::optional<CollectiveId> started) {
    const Calls& body = *p_.calls[r.task];
    const CallRange range = calls_of(r, body);
    const InstructionId home = home_of(r, i);
    const IdVector<BufferId, Touched> part = r.calls ? touched_in(body, range) : IdVector<BufferId, Touched>();
    for (BufferId b : body.buffers.ids()) {
      const Touched touched = r.calls ? part[b] : body.buffers[b].touched;
      if (!touched) continue;
      const i64 at = out_.clock[i] - range.from.value;
      const std::optional<LiveId> id = find(r, i, home, b, started, at + touched->first.value);
      if (!id) continue;
      LiveBuffer& live = out_.buffers[*id];
      live.last = std::max(live.last, at + touched->last.value);
      live.microbatch = r.microbatch;
      live.run = live.read = i;
      if (started) started_[*started].push_back(*id);
    }
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

  // Which live buffer a run's buffer is; none: it does not lie in the arena of activations.
  std::optional<LiveId> find(const Run& r, InstructionId i, InstructionId home, BufferId b,
                             std::optional<CollectiveId> started, i64 first) {
    const BodyBuffer& buffer = p_.calls[r.task]->buffers[b];
    const BufferUse use{home, b};
    if (buffer.temporary()) {
      LiveId id = out_.buffers.next_id();
      if (r.calls) id = temporaries_.try_emplace({home, b}, id).first->second;
      if (!out_.buffers.has(id)) {
        add(buffer.bytes, first, i);
        out_.uses.push_back({id, use});
      }
      return id;
    }
    const ResultId* result = buffer.result();
    const Binding where = bound(p_, r, *binding_of(p_, r, b));
    if (visits(p_, actor_, where)) {
      const LiveId id = visiting_.at(std::get<AccumulatorId>(where));
      out_.buffers[id].read = i;
      out_.uses.push_back({id, use});
      return id;
    }
    const ValueId* value = as<ValueId>(where);
    if (!value) return {};
    Instance instance{*value, r.microbatch};
    if (gathered(s_, *value)) instance.of = result ? *started : newest_.at(*value);
    if (result)
      if (const auto it = direct_.find(instance); it != direct_.end()) {
        out_.elsewhere.push_back({use, it->second});
        return {};
      }
    const LiveId id = touch(instance, buffer.bytes, first, i);
    out_.uses.push_back({id, use});
    return id;
  }

  void add(u64 bytes, i64 first, InstructionId i) {
    out_.buffers.push_back({.bytes = bytes, .first = first, .last = first, .made = i, .read = i});
  }
  LiveId touch(const Instance& instance, u64 bytes, i64 first, InstructionId i) {
    const auto [it, fresh] = known_.try_emplace(instance, out_.buffers.next_id());
    if (fresh) {
      add(bytes, first, i);
      out_.buffers.back().value = instance.value;
    }
    out_.buffers[it->second].read = i;
    return it->second;
  }

  void await(const Await& w, InstructionId i) {
    for (const Binding& b : s_.tasks[w.task].outputs)
      if (const ValueId* v = as<ValueId>(b)) newest_[*v] = w.collective;
    for (LiveId k : started_[w.collective]) out_.buffers[k].last = std::max(out_.buffers[k].last, out_.clock[i]);
  }

  // A value lives on its sender until it is sent, unless it is made in the receiver's memory, and on its receiver from
  // the moment at which it can be written.
  void send(TransferId id, InstructionId i) {
    const Transfer& t = p_.transfers[id];
    if (!t.value() || t.direct) return;
    const LiveId live = touch({t.value()->value, t.value()->microbatch}, t.extents[0].bytes, out_.clock[i], i);
    LiveBuffer& b = out_.buffers[live];
    b.last = std::max({b.last, out_.clock[i], t.released ? out_.clock[*t.released] - 1 : 0});
    out_.ends.push_back({live, {id, true}});
  }
  void receive(TransferId id, InstructionId i) {
    const Transfer& t = p_.transfers[id];
    const AccumulatorId* gradient = std::get_if<AccumulatorId>(&t.what);
    if (!t.value() && !gradient) return;
    LiveId live = out_.buffers.next_id();
    if (gradient) {
      add(t.extents[0].bytes, out_.clock[t.posted], i);
      visiting_[*gradient] = live;
    } else {
      live = touch({t.value()->value, t.value()->microbatch}, t.extents[0].bytes, out_.clock[t.posted], i);
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
  Lifetimes out_;
  std::unordered_map<AccumulatorId, LiveId> visiting_;
  std::unordered_map<Instance, LiveId, InstanceHash> known_;
  std::unordered_map<Instance, TransferId, InstanceHash> direct_;     // made in the memory of whoever reads it
  std::unordered_map<ValueId, CollectiveId> newest_;                  // gathered parameters: what was awaited last
  std::unordered_map<CollectiveId, std::vector<LiveId>> started_;     // what it touches
  std::map<std::pair<TaskId, MicrobatchId>, InstructionId> parts_;    // of runs in parts: the first
  std::map<std::pair<InstructionId, BufferId>, LiveId> temporaries_;  // ... and what they share
};

}  // namespace

Lifetimes lifetimes(const Program& p, ActorId actor) { return Walk(p, actor).run(); }

}  // namespace stretto
