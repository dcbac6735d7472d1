#include "stretto/program/proofs/order.h"

#include <algorithm>
#include <map>
#include <optional>

namespace stretto {
namespace {

class Play {
 public:
  Play(const Program& p, const Come& come)
      : p_(p),
        come_(come),
        known_(p.actors.size(), Known(p.actors.size(), InstructionId(0))),
        sent_(p.transfers.size()),
        waiting_(p.transfers.size()) {}

  std::vector<Fault> run() {
    for (ActorId a : p_.actors.ids()) ready_.push_back(a), at_.push_back(p_.actors[a].code.begin());
    while (!ready_.empty()) {
      const ActorId a = ready_.back();
      ready_.pop_back();
      go_on(a);
    }
    return faults();
  }

 private:
  // Plays an actor until it has to wait for a message. Whoever sends that wakes it.
  void go_on(ActorId a) {
    const Code::Iterator end = p_.actors[a].code.end();
    for (Code::Iterator& at = at_[a]; at != end; ++at) {
      const InstructionId i = known_[a][a] = at.id();
      const Instruction now = *at;
      const bool goes = match(
          now, [&](const Receive& r) { return receive(a, r.transfer); },
          [](const OneOf<Run, Send, Start, Await> auto&) { return true; });
      if (!goes) return;
      come_(a, at, known_[a]);
      if (const auto sent = sent_by(now)) send(a, *sent, i);
    }
  }
  void send(ActorId a, TransferId t, InstructionId i) {
    sent_[t] = known_[a];
    sent_[t][a] = InstructionId(i.value + 1);  // whoever has the message knows that it was read
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

  std::vector<Fault> faults() const {
    std::vector<Fault> all;
    for (ActorId a : p_.actors.ids())
      if (at_[a] != p_.actors[a].code.end())
        all.push_back(fault(fmt::format("program, actor {}", a.value), "give the schedule another order",
                            "waits forever at instruction {}: {}", at_[a].id().value, p_.str(*at_[a])));
    for (TransferId t : sent_.ids())
      if (all.empty() && !sent_[t].empty())
        all.push_back(fault("program", "", "'{}' is sent and never received", p_.routes[p_.transfers[t].route].name));
    return all;
  }

  const Program& p_;
  const Come& come_;
  IdVector<ActorId, Code::Iterator> at_;
  IdVector<ActorId, Known> known_;
  IdVector<TransferId, Known> sent_;  // of a message under way: what its sender knew
  IdVector<TransferId, std::optional<ActorId>> waiting_;
  std::vector<ActorId> ready_;  // can go on
};

// Which instructions of a turn's code write its messages: the same in all turns with this code.
struct WrittenInTurn {
  std::size_t at;
  TransferId transfer;  // its number
};
std::vector<WrittenInTurn> written_in(const Program& p, const Code& code, const Turn& turn) {
  const std::vector<Instruction>& all = code.kind(turn).instructions;
  const auto transfer = [&](TransferId number) -> const Transfer& { return p.transfers[code.transfer(turn, number)]; };
  std::vector<WrittenInTurn> written;
  std::map<std::pair<ValueId, MicrobatchId>, TransferId> direct;  // whose first touch has not been found yet
  for (const Instruction& i : all)
    if (const auto sent = sent_by(i); sent && transfer(*sent).direct) {
      const SentValue& v = *transfer(*sent).value();
      direct[{v.value, v.microbatch}] = *sent;
    }
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (const auto sent = sent_by(all[k]); sent && !transfer(*sent).direct) written.push_back({k, *sent});
    const Run* r = task_of(all[k]);
    if (!r || direct.empty()) continue;
    const CallRange calls = calls_of(*r, *p.calls[r->task]);
    for (const BodyBuffer& b : p.calls[r->task]->buffers) {
      const ResultId* result = b.result();
      const ValueId* v = result && b.touched ? as<ValueId>(p.task(*r).outputs[*result]) : nullptr;
      if (!v || b.touched->last < calls.from || b.touched->first >= calls.to) continue;
      const auto it = direct.find({*v, code.microbatch(turn, r->microbatch)});
      if (it == direct.end()) continue;
      written.push_back({k, it->second});
      direct.erase(it);
    }
  }
  STRETTO_ASSERT(direct.empty(), "what is made in another's memory is made by a run");
  return written;
}

}  // namespace

std::vector<Written> written_by(const Program& p, ActorId a) {
  const Code& code = p.actors[a].code;
  IdVector<TurnCodeId, std::optional<std::vector<WrittenInTurn>>> known(code.kinds().size());
  std::vector<Written> written;
  for (const Turn& t : code.turns()) {
    auto& kind = known[t.code];
    if (!kind) kind = written_in(p, code, t);
    for (const auto& [at, number] : *kind)
      written.push_back({InstructionId(t.first.value + at), code.transfer(t, number)});
  }
  return written;
}

std::vector<Fault> play(const Program& p, const Come& come) { return Play(p, come).run(); }

std::vector<Fault> settle_order(Program& p) {
  IdVector<ActorId, std::vector<Written>> written;
  for (ActorId a : p.actors.ids()) written.push_back(written_by(p, a));
  IdVector<ActorId, std::size_t> next(p.actors.size(), 0);
  return play(p, [&](ActorId a, const Code::Iterator& at, const Known& known) {
    for (std::size_t& n = next[a]; n < written[a].size() && written[a][n].at == at.id(); ++n) {
      Transfer& t = p.transfers[written[a][n].transfer];
      t.posted = known[p.routes[t.route].target];
    }
  });
}

}  // namespace stretto
