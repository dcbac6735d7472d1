#include "stretto/program/next_step.h"

#include <algorithm>
#include <map>

#include "stretto/program/emit/touches.h"
#include "stretto/program/lanes.h"
#include "stretto/program/proofs/order.h"

namespace stretto {
namespace {

// Memory of one actor that a message of the next step is written to, until it is known who touches it last.
struct Expected {
  TransferId transfer;
  Slot at;
  u64 bytes = 0;
};

// Walks an actor's code from its end.
class LastTouch {
 public:
  LastTouch(const Program& p, ActorId a, std::vector<Expected> expected)
      : p_(p), a_(a), code_(p.actors[a].code), lanes_(lanes_of(p, a)), open_(std::move(expected)) {
    for (InstructionId i : code_.ids()) {
      const Instruction x = code_[i];
      if (const Start* s = start_of(x)) started_.insert({s->collective, s->run});
      if (const auto sent = sent_by(x)) kept_.insert({last_read(p.transfers[*sent], i), *sent});
    }
  }

  // Per transfer: the instruction after the last one that touches any of its memory.
  std::map<TransferId, InstructionId> run() {
    for (std::size_t n = code_.size(); n-- > 0 && !open_.empty();) {
      const InstructionId i(n);
      match(
          code_[i], [&](const Run& r) { run(r, i); }, [&](const Receive& r) { receive(p_.transfers[r.transfer], i); },
          [&](const Start& s) { run(s.run, i); }, [&](const Await& w) { run(started_.at(w.collective), i); },
          [](const Send&) {});
      const auto [first, last] = kept_.equal_range(i);
      for (auto it = first; it != last; ++it) send(p_.transfers[it->second], i);
    }
    return std::move(until_);
  }

 private:
  void touch(const Slot& s, u64 bytes, InstructionId by) {
    if (s.elsewhere) return;
    std::erase_if(open_, [&](const Expected& e) {
      if (e.at.arena != s.arena || e.at.offset >= s.offset + bytes || s.offset >= e.at.offset + e.bytes) return false;
      InstructionId& until = until_[e.transfer];
      until = std::max(until, told_after(by));
      return true;
    });
  }
  void run(const Run& r, InstructionId by) {
    const Calls& body = *p_.calls[r.task];
    for (const Touch& t : touches_of(body, calls_of(r, body)))
      touch(p_.actors[a_].slots[SlotId(r.args.value + t.buffer.value)], body.buffers[t.buffer].bytes, by);
  }
  void receive(const Transfer& t, InstructionId by) {
    for (const Extent& e : t.extents) touch(e.to, e.bytes, by);
  }
  void send(const Transfer& t, InstructionId by) {
    if (!t.direct)
      for (const Extent& e : t.extents) touch(e.from, e.bytes, by);
  }
  // An actor's progress is announced in its compute lane, which by then has waited for all other lanes' use of this
  // memory.
  InstructionId told_after(InstructionId i) const {
    do i = InstructionId(i.value + 1);
    while (code_.has(i) && lanes_.lane[i] != DeviceLane::compute);
    return i;
  }
  static InstructionId last_read(const Transfer& t, InstructionId sent) {
    return t.released ? std::max(sent, InstructionId(t.released->value - 1)) : sent;
  }

  const Program& p_;
  const ActorId a_;
  const Code& code_;
  const Lanes lanes_;
  std::vector<Expected> open_;
  std::map<TransferId, InstructionId> until_;
  std::map<CollectiveId, Run> started_;
  std::multimap<InstructionId, TransferId> kept_;  // by the last instruction at which the sender's memory is still kept
};

// The writer of this message has heard nothing of its receiver since the step began.
bool unheard(const Transfer& t) { return t.posted == InstructionId(0); }

std::vector<NextStepWait> waits_of(const Program& p, ActorId a, const std::map<TransferId, InstructionId>& until) {
  std::vector<NextStepWait> all;
  std::map<ActorId, InstructionId> known;
  for (const auto& [at, t] : written_by(p, a)) {
    if (!unheard(p.transfers[t]) || p.transfers[t].extents.empty()) continue;
    const ActorId target = p.routes[p.transfers[t].route].target;
    const InstructionId needed = until.at(t);
    if (const auto it = known.find(target); it != known.end() && it->second >= needed) continue;
    known[target] = needed;
    all.push_back({at, target, needed});
  }
  return all;
}

}  // namespace

NextStep next_step(const Program& p) {
  IdVector<ActorId, std::vector<Expected>> expected(p.actors.size());
  for (TransferId t : p.transfers.ids())
    if (const Transfer& x = p.transfers[t]; unheard(x))
      for (const Extent& e : x.extents) expected[p.routes[x.route].target].push_back({t, e.to, e.bytes});
  std::map<TransferId, InstructionId> until;
  for (ActorId a : p.actors.ids()) until.merge(LastTouch(p, a, std::move(expected[a])).run());
  NextStep n{.waits = {}, .told = IdVector<ActorId, std::vector<InstructionId>>(p.actors.size())};
  for (ActorId a : p.actors.ids()) n.waits.push_back(waits_of(p, a, until));
  for (const std::vector<NextStepWait>& waits : n.waits)
    for (const NextStepWait& w : waits) n.told[w.actor].push_back(w.until);
  for (std::vector<InstructionId>& at : n.told) {
    std::sort(at.begin(), at.end());
    at.erase(std::unique(at.begin(), at.end()), at.end());
  }
  return n;
}

Program two_steps(const Program& p, const NextStep& next) {
  Program two = p;
  for (const Transfer& t : p.transfers) {  // those of the second step
    Transfer& again = two.transfers[two.transfers.push_back(t)];
    if (SentValue* v = std::get_if<SentValue>(&again.what)) v->microbatch.value += p.microbatches;
  }
  // The waits, as messages: what an actor tells before an instruction of the first step, and what it hears before one
  // of the second.
  IdVector<ActorId, std::multimap<InstructionId, TransferId>> tell(p.actors.size()), hear(p.actors.size());
  for (ActorId a : next.waits.ids())
    for (const NextStepWait& w : next.waits[a]) {
      const RouteId route = two.routes.push_back({.source = w.actor, .target = a, .name = "has got so far"});
      const TransferId t = two.transfers.push_back({.route = route, .what = SentWord{}});
      tell[w.actor].insert({w.until, t});
      hear[a].insert({w.at, t});
    }
  for (ActorId a : p.actors.ids()) {
    const auto& code = p.actors[a].code;
    std::vector<Instruction> out;
    const std::uint32_t collectives = p.actors[a].collectives;
    for (const std::uint32_t step : {0u, 1u}) {
      IdVector<InstructionId, InstructionId> at;  // where an instruction stands now, with what is told before it
      for (std::uint32_t n = 0; n <= code.size(); ++n) {
        const InstructionId i(n);
        at.push_back(InstructionId(out.size()));
        const auto [first, last] = (step == 0 ? tell : hear)[a].equal_range(i);
        for (auto it = first; it != last; ++it)
          out.push_back(step == 0 ? Instruction(Send{it->second}) : Instruction(Receive{it->second}));
        if (!code.has(i)) continue;
        Instruction x = code[i];
        if (Run* r = task_of(x)) r->microbatch.value += step * p.microbatches;
        match(
            x, [&](Send& s) { s.transfer.value += step * p.transfers.size(); },
            [&](Receive& r) { r.transfer.value += step * p.transfers.size(); },
            [&](Start& s) { s.collective.value += step * collectives; },
            [&](Await& w) { w.collective.value += step * collectives; }, [](Run&) {});
        out.push_back(std::move(x));
      }
      for (InstructionId i : code.ids())
        if (const auto sent = sent_by(code[i])) {
          Transfer& t = two.transfers[TransferId(sent->value + step * p.transfers.size())];
          if (t.released) t.released = at[*t.released];
        }
    }
    two.actors[a].code = Code(out);
    two.actors[a].collectives = 2 * collectives;
  }
  return two;
}

}  // namespace stretto
