#include "stretto/program/memory/lifetimes.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <variant>

#include "stretto/program/emit/touches.h"
#include "stretto/program/memory/persistent.h"
#include "stretto/step/storage.h"

namespace stretto {
namespace {

// What a turn's code touches in the arena of activations, as the turn itself can name it.
struct Temporary {
  std::size_t run;  // that it belongs to, an instruction
  BufferId buffer;
  auto operator<=>(const Temporary&) const = default;
};
struct OfMicrobatch {
  ValueId value;
  std::variant<MicrobatchId, TransferId> which;  // by a message, if no run of the turn is of its microbatch
  auto operator<=>(const OfMicrobatch&) const = default;
};
struct OfGather {  // a parameter
  ValueId value;
  std::optional<CollectiveId> by;  // none: that was awaited last before the turn
  auto operator<=>(const OfGather&) const = default;
};
struct Visiting {  // gradients of another actor
  AccumulatorId accumulator;
  auto operator<=>(const Visiting&) const = default;
};
using Named = std::variant<Temporary, OfMicrobatch, OfGather, Visiting>;

// From when to when a turn touches it, counted from the turn's beginning in kernel calls, and in which instructions.
struct Touched {
  Named what;
  u64 bytes = 0;
  i64 first = 0, last = 0;
  std::size_t made = 0, read = 0;
  struct OfRun {
    std::size_t at;
    MicrobatchId microbatch;
  };
  std::optional<OfRun> run = {};  // the last with it
  struct Reception {
    TransferId transfer;
    i64 at;
    bool first;  // nothing of the turn touched it before
  };
  std::optional<Reception> received = {};
};
// All that is the same in every turn with this code. Ids are the turn's own.
struct TurnTouches {
  i64 calls = 0;
  std::vector<i64> clock;  // of its instructions
  std::vector<Touched> all;
  std::vector<std::vector<SlotId>> slots;                                  // of each of those
  std::vector<std::pair<std::size_t, TransferId>> sent;                    // of those, and when
  std::vector<std::pair<SlotId, TransferId>> elsewhere;                    // results made in another actor's memory
  std::vector<std::pair<CollectiveId, std::vector<std::size_t>>> started;  // that a later turn awaits
  std::vector<std::pair<CollectiveId, i64>> awaited;                       // that an earlier one started, and when
  std::vector<std::pair<ValueId, CollectiveId>> gathered;                  // what was awaited last, per parameter
};

// Looks at a turn's code.
class TurnReader {
 public:
  TurnReader(const Program& p, ActorId actor, const Turn& turn, Temporaries which)
      : p_(p),
        s_(*p.step),
        actor_(actor),
        code_(p.actors[actor].code),
        turn_(turn),
        which_(which),
        microbatches_(code_.numbers(turn).microbatches) {
    for (const Instruction& i : code_.kind(turn).instructions)
      if (const auto number = sent_by(i))
        if (const Transfer& t = transfer(*number); t.direct) direct_[own(t, *number)] = *number;
  }

  TurnTouches run() {
    const std::vector<Instruction>& all = code_.kind(turn_).instructions;
    for (at_ = 0; at_ < all.size(); ++at_) {
      out_.clock.push_back(now_);
      match(
          all[at_], [&](const Run& r) { run(r, std::nullopt); }, [&](const Start& s) { run(s.run, s.collective); },
          [&](const Await& w) { await(w); }, [&](const Send& s) { send(s.transfer); },
          [&](const Receive& r) { receive(r.transfer); });
    }
    out_.calls = now_;
    for (const auto& [collective, things] : started_) out_.started.push_back({collective, things});
    for (const auto& [value, collective] : newest_) out_.gathered.push_back({value, collective});
    return std::move(out_);
  }

 private:
  void run(const Run& r, std::optional<CollectiveId> started) {
    const Calls& body = *p_.calls[r.task];
    const CallRange range = calls_of(r, body);
    const auto part = r.calls ? touched_in(body, range) : IdVector<BufferId, std::optional<BodyBuffer::Touched>>();
    std::size_t home = at_;
    if (r.calls) home = parts_.try_emplace({r.task, r.microbatch}, at_).first->second;
    for (BufferId b : body.buffers.ids()) {
      const BodyBuffer& buffer = body.buffers[b];
      const auto touched = r.calls ? part[b] : buffer.touched;
      if (!touched) continue;
      const std::optional<Named> what = name(r, b, home, started);
      if (!what) continue;
      const i64 from = now_ - range.from.value;
      const std::size_t k = touch(*what, buffer.bytes, from + touched->first.value, from + touched->last.value);
      Touched& t = out_.all[k];
      t.run = {at_, r.microbatch};
      add_slot(k, SlotId(r.args.value + b.value));
      if (started) started_[*started].push_back(k);
    }
    now_ += std::max<i64>(1, i64{range.to.value} - range.from.value);
  }
  // None: it does not lie among the activations of this actor.
  std::optional<Named> name(const Run& r, BufferId b, std::size_t home, std::optional<CollectiveId> started) {
    const Binding* where = binding_of(p_, r, b);
    if (!where) {
      if (which_ == Temporaries::of_parts && !r.calls) return std::nullopt;
      return Temporary{home, b};
    }
    if (as<AccumulatorId>(*where)) {
      Run here = r;
      here.microbatch = code_.microbatch(turn_, r.microbatch);
      const AccumulatorId g = std::get<AccumulatorId>(bound(p_, here, *where));
      return visits(p_, actor_, g) ? std::optional<Named>(Visiting{g}) : std::nullopt;
    }
    const ValueId* value = as<ValueId>(*where);
    if (!value) return std::nullopt;
    const bool result = p_.calls[r.task]->buffers[b].result() != nullptr;
    if (gathered(s_, *value)) {
      const auto newest = newest_.find(*value);
      return OfGather{*value, result                    ? started
                              : newest == newest_.end() ? std::nullopt
                                                        : std::optional(newest->second)};
    }
    const OfMicrobatch own{*value, number_of(code_.microbatch(turn_, r.microbatch)).value()};
    const auto direct = result ? direct_.find(own) : direct_.end();
    if (direct == direct_.end()) return own;
    out_.elsewhere.push_back({SlotId(r.args.value + b.value), direct->second});
    return std::nullopt;
  }
  // What some of a body's calls touch. They need not run in the body's order.
  static IdVector<BufferId, std::optional<BodyBuffer::Touched>> touched_in(const Calls& body, CallRange range) {
    IdVector<BufferId, std::optional<BodyBuffer::Touched>> all(body.buffers.size());
    for (CallId c : ids(range))
      for (const auto* refs : {&body.calls[c].in, &body.calls[c].out})
        for (const Ref& x : *refs)
          if (x.buffer) all[*x.buffer] = {all[*x.buffer].value_or(BodyBuffer::Touched{c, c}).first, c};
    return all;
  }
  std::size_t touch(const Named& what, u64 bytes, i64 first, i64 last) {
    const auto [it, fresh] = known_.try_emplace(what, out_.all.size());
    if (fresh) {
      out_.all.push_back({.what = what, .bytes = bytes, .first = first, .last = first, .made = at_});
      out_.slots.push_back({});
    }
    Touched& t = out_.all[it->second];
    t.last = std::max(t.last, last), t.read = at_;
    return it->second;
  }
  void add_slot(std::size_t k, SlotId s) {
    std::vector<SlotId>& all = out_.slots[k];
    if (std::find(all.begin(), all.end(), s) == all.end()) all.push_back(s);
  }

  void await(const Await& w) {
    for (const Binding& b : s_.tasks[w.task].outputs)
      if (const ValueId* v = as<ValueId>(b)) newest_[*v] = w.collective;
    const auto here = started_.find(w.collective);
    if (here == started_.end()) {
      out_.awaited.push_back({w.collective, now_});
    } else {
      for (std::size_t k : here->second) out_.all[k].last = std::max(out_.all[k].last, now_);
      started_.erase(here);
    }
    ++now_;
  }
  // A value lives on its sender until it is sent, unless it is made in the receiver's memory, and on its receiver from
  // the moment at which it can be written.
  void send(TransferId number) {
    const Transfer& t = transfer(number);
    if (t.value() && !t.direct) out_.sent.push_back({touch(own(t, number), t.extents[0].bytes, now_, now_), number});
    ++now_;
  }
  void receive(TransferId number) {
    const Transfer& t = transfer(number);
    const AccumulatorId* gradient = std::get_if<AccumulatorId>(&t.what);
    if (t.value() || gradient) {
      const Named what = gradient ? Named(Visiting{*gradient}) : Named(own(t, number));
      const bool first = !known_.contains(what);
      out_.all[touch(what, t.extents[0].bytes, now_, now_)].received = {number, now_, first};
    }
    ++now_;
  }
  const Transfer& transfer(TransferId number) const { return p_.transfers[code_.transfer(turn_, number)]; }
  OfMicrobatch own(const Transfer& t, TransferId number) const {
    const auto [value, microbatch] = *t.value();
    if (const auto of_run = number_of(microbatch)) return {value, *of_run};
    return {value, number};
  }
  // Two numbers may stand for one microbatch: the first.
  std::optional<MicrobatchId> number_of(MicrobatchId m) const {
    const auto it = std::find(microbatches_.begin(), microbatches_.end(), m);
    return it == microbatches_.end() ? std::nullopt : std::optional(MicrobatchId(it - microbatches_.begin()));
  }

  const Program& p_;
  const Step& s_;
  const ActorId actor_;
  const Code& code_;
  const Turn& turn_;
  const Temporaries which_;
  const std::vector<MicrobatchId> microbatches_;
  std::map<OfMicrobatch, TransferId> direct_;
  std::size_t at_ = 0;
  i64 now_ = 0;
  TurnTouches out_;
  std::map<Named, std::size_t> known_;
  std::map<std::pair<TaskId, MicrobatchId>, std::size_t> parts_;
  std::map<CollectiveId, std::vector<std::size_t>> started_;
  std::map<ValueId, CollectiveId> newest_;  // awaited in this turn
};

// Something for every microbatch of those values that have it. What is touched together lies together: a microbatch's,
// in the order in which the first of them were touched.
class LiveValues {
 public:
  explicit LiveValues(const Program& p) : numbers_(p.step->values.size()), all_(p.pipe_of.size()) {}
  std::optional<LiveId>& at(ValueId v, MicrobatchId m) {
    std::optional<std::uint32_t>& number = numbers_[v];
    if (!number) number = count_++;
    if (all_[m].size() <= *number) all_[m].resize(count_);
    return all_[m][*number];
  }

 private:
  IdVector<ValueId, std::optional<std::uint32_t>> numbers_;
  std::uint32_t count_ = 0;
  IdVector<MicrobatchId, std::vector<std::optional<LiveId>>> all_;
};

// Goes through an actor's turns.
class Walk {
 public:
  Walk(const Program& p, ActorId actor, Temporaries which)
      : p_(p),
        code_(p.actors[actor].code),
        values_(p),
        newest_(p.step->values.size()),
        gathered_(p.step->values.size()) {
    kinds_.resize(code_.kinds().size());
    out_.slots.resize(code_.kinds().size());
    out_.clock.reserve(code_.size() + 1);
    i64 now = 0;
    for (const Turn& t : code_.turns()) {
      std::optional<TurnTouches>& kind = kinds_[t.code];
      if (!kind) {
        kind = TurnReader(p, actor, t, which).run();
        out_.slots[t.code] = std::move(kind->slots);
      }
      for (const i64 at : kind->clock) out_.clock.push_back(now + at);
      now += kind->calls;
    }
    out_.clock.push_back(now);
    std::size_t touched = 0;
    for (const Turn& t : code_.turns()) touched += kinds_[t.code]->all.size();
    out_.touched.reserve(touched), out_.buffers.reserve(touched);
    started_.resize(p.actors[actor].collectives);
  }

  Lifetimes run() {
    for (std::size_t k = 0; k < code_.turns().size(); ++k) turn(k, code_.turns()[k]);
    return std::move(out_);
  }

 private:
  void turn(std::size_t position, const Turn& t) {
    const TurnTouches& kind = *kinds_[t.code];
    const i64 begin = out_.clock[t.first];
    const std::size_t first = out_.touched.size();
    out_.first_touched.push_back(first);
    for (const Touched& x : kind.all) out_.touched.push_back(touch(x, t, begin));
    for (const auto& [k, number] : kind.sent) {
      const TransferId sent = code_.transfer(t, number);
      LiveBuffer& b = out_.buffers[out_.touched[first + k]];
      if (const auto& released = p_.transfers[sent].released) b.last = std::max(b.last, out_.clock[*released] - 1);
      out_.ends.push_back({out_.touched[first + k], {sent, true}});
    }
    for (const auto& [slot, number] : kind.elsewhere)
      out_.elsewhere.push_back({{position, slot}, code_.transfer(t, number)});
    for (const auto& [number, touched] : kind.started)
      for (std::size_t k : touched) started_[code_.collective(t, number)].push_back(out_.touched[first + k]);
    for (const auto& [number, at] : kind.awaited)
      for (LiveId id : started_[code_.collective(t, number)])
        out_.buffers[id].last = std::max(out_.buffers[id].last, begin + at);
    for (const auto& [value, number] : kind.gathered) newest_[value] = code_.collective(t, number);
  }

  LiveId touch(const Touched& x, const Turn& t, i64 begin) {
    const auto in_code = [&](std::size_t k) { return InstructionId(t.first.value + k); };
    const auto add = [&](std::optional<ValueId> value) {
      i64 first = begin + x.first;
      if (x.received && x.received->first)
        first = out_.clock[p_.transfers[code_.transfer(t, x.received->transfer)].posted];
      return out_.buffers.push_back({.bytes = x.bytes,
                                     .first = first,
                                     .last = first,
                                     .value = value,
                                     .made = in_code(x.made),
                                     .read = in_code(x.made)});
    };
    const LiveId id = match(
        x.what, [&](const Temporary&) { return add({}); },
        [&](const OfMicrobatch& v) {
          std::optional<LiveId>& known = values_.at(v.value, microbatch(t, v));
          if (!known) known = add(v.value);
          return *known;
        },
        [&](const OfGather& v) {
          const CollectiveId by = v.by ? code_.collective(t, *v.by) : newest_[v.value].value();
          auto& all = gathered_[v.value];
          auto known = std::find_if(all.rbegin(), all.rend(), [&](const auto& y) { return y.first == by; });
          if (known == all.rend()) all.push_back({by, add(v.value)}), known = all.rbegin();
          return known->second;
        },
        [&](const Visiting& v) {
          if (x.received && x.received->first) visiting_[v.accumulator] = add({});
          return visiting_.at(v.accumulator);
        });
    LiveBuffer& b = out_.buffers[id];
    b.last = std::max(b.last, begin + x.last);
    b.read = std::max(b.read, in_code(x.read));
    if (x.received) {
      const TransferId came = code_.transfer(t, x.received->transfer);
      b.received = begin + x.received->at;
      if (const SentValue* v = p_.transfers[came].value()) b.microbatch = v->microbatch;
      out_.ends.push_back({id, {came, false}});
    }
    if (x.run) {
      b.microbatch = code_.microbatch(t, x.run->microbatch);
      b.run = std::max(b.run.value_or(in_code(x.run->at)), in_code(x.run->at));
    }
    return id;
  }
  MicrobatchId microbatch(const Turn& t, const OfMicrobatch& v) const {
    return match(
        v.which, [&](MicrobatchId m) { return code_.microbatch(t, m); },
        [&](TransferId x) { return p_.transfers[code_.transfer(t, x)].value()->microbatch; });
  }

  const Program& p_;
  const Code& code_;
  Lifetimes out_;
  IdVector<TurnCodeId, std::optional<TurnTouches>> kinds_;
  LiveValues values_;
  std::unordered_map<AccumulatorId, LiveId> visiting_;
  IdVector<ValueId, std::optional<CollectiveId>> newest_;                     // of parameters: what was awaited last
  IdVector<ValueId, std::vector<std::pair<CollectiveId, LiveId>>> gathered_;  // ... by each gather
  IdVector<CollectiveId, std::vector<LiveId>> started_;                       // what it touches
};

}  // namespace

Lifetimes lifetimes(const Program& p, ActorId actor, Temporaries which) { return Walk(p, actor, which).run(); }

}  // namespace stretto
