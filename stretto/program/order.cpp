#include "stretto/program/order.h"

#include <algorithm>
#include <map>

namespace stretto {
namespace {

class Play {
 public:
  explicit Play(Program& p)
      : p_(p),
        at_(p.actors.size(), InstructionId(0)),
        known_(p.actors.size(), Known(p.actors.size(), InstructionId(0))),
        sent_(p.transfers.size()),
        waiting_(p.transfers.size()),
        direct_(p.actors.size()) {
    for (ActorId a : p.actors.ids()) find_direct(a);
  }

  std::vector<Fault> run() {
    for (ActorId a : p_.actors.ids()) ready_.push_back(a);
    while (!ready_.empty()) {
      const ActorId a = ready_.back();
      ready_.pop_back();
      go_on(a);
    }
    return faults();
  }

 private:
  using Known = IdVector<ActorId, InstructionId>;  // the first of its instructions that may not be done

  // Until it has to wait for a message; the one that sends it wakes it.
  void go_on(ActorId a) {
    const auto& code = p_.actors[a].code;
    for (InstructionId& i = at_[a]; code.has(i); i = InstructionId(i.value + 1)) {
      known_[a][a] = i;
      const bool goes = match(
          code[i],
          [&](const Run&) {
            post_direct(a, i);
            return true;
          },
          [&](const Send& s) {
            send(a, s.transfer);
            return true;
          },
          [&](const Receive& r) { return receive(a, r.transfer); },
          // Collectives are between ranks of one actor, at the same place in each of their lists.
          [&](const Start&) {
            post_direct(a, i);
            return true;
          },
          [](const Await&) { return true; });
      if (!goes) return;
    }
  }
  void send(ActorId a, TransferId t) {
    if (!p_.transfers[t].direct) post(a, t);
    sent_[t] = known_[a];
    if (waiting_[t]) ready_.push_back(*waiting_[t]);
  }
  bool receive(ActorId a, TransferId t) {
    if (sent_[t].empty()) {
      waiting_[t] = a;
      return false;
    }
    for (ActorId b : known_[a].ids()) known_[a][b] = std::max(known_[a][b], sent_[t][b]);
    sent_[t] = {};
    return true;
  }
  void post_direct(ActorId a, InstructionId i) {
    for (TransferId t : direct_[a][i]) post(a, t);
  }
  void post(ActorId a, TransferId t) { p_.transfers[t].posted = known_[a][p_.routes[p_.transfers[t].route].target]; }

  // Which transfers an instruction writes straight into another actor's memory: those of values that it is the first to
  // touch, in whole runs and in parts.
  void find_direct(ActorId a) {
    const auto& code = p_.actors[a].code;
    direct_[a].resize(code.size());
    std::map<std::pair<ValueId, MicrobatchId>, InstructionId> made;
    for (InstructionId i : code.ids())
      if (const Run* r = task_of(code[i]))
        for (ValueId v : touched_results(*r)) made.try_emplace({v, r->microbatch}, i);
    for (const Instruction& i : code)
      if (const Send* s = std::get_if<Send>(&i); s && p_.transfers[s->transfer].direct) {
        const SentValue& v = *p_.transfers[s->transfer].value();
        direct_[a][made.at({v.value, v.microbatch})].push_back(s->transfer);
      }
  }
  std::vector<ValueId> touched_results(const Run& r) const {
    const Calls& body = *p_.calls[r.task];
    const CallRange range = calls_of(r, body);
    std::vector<ValueId> all;
    for (const BodyBuffer& b : body.buffers)
      if (b.result() && b.touched && b.touched->first < range.to && b.touched->last >= range.from)
        if (const ValueId* v = as<ValueId>(p_.task(r).outputs[*b.result()])) all.push_back(*v);
    return all;
  }

  std::vector<Fault> faults() const {
    std::vector<Fault> all;
    for (ActorId a : p_.actors.ids())
      if (const auto& code = p_.actors[a].code; code.has(at_[a]))
        all.push_back(fault(fmt::format("program, actor {}", a.value), "give the schedule another order",
                            "waits forever at instruction {}: {}", at_[a].value, p_.str(code[at_[a]])));
    for (TransferId t : sent_.ids())
      if (all.empty() && !sent_[t].empty())
        all.push_back(fault("program", "", "'{}' is sent and never received", p_.routes[p_.transfers[t].route].name));
    return all;
  }

  Program& p_;
  IdVector<ActorId, InstructionId> at_;
  IdVector<ActorId, Known> known_;
  IdVector<TransferId, Known> sent_;  // while it is under way: what its sender knew
  IdVector<TransferId, std::optional<ActorId>> waiting_;
  IdVector<ActorId, IdVector<InstructionId, std::vector<TransferId>>> direct_;
  std::vector<ActorId> ready_;  // can go on
};

}  // namespace

std::vector<Fault> settle_order(Program& p) { return Play(p).run(); }

}  // namespace stretto
