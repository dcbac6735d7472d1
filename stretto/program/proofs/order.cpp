#include "stretto/program/proofs/order.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "stretto/schedule/in_order.h"

namespace stretto {
namespace {

class Play {
 public:
  Play(const Program& p, const Wanted& wanted, const Come& come)
      : p_(p),
        come_(come),
        events_(p.actors.size()),
        at_(p.actors.size()),
        known_(p.actors.size(), Known(p.actors.size(), InstructionId(0))),
        sent_(p.transfers.size()),
        order_(p.actors.size(), p.transfers.size()) {
    for (ActorId a : p.actors.ids())
      for (TurnCodeId kind : p.actors[a].code.kinds().ids()) events_[a].push_back(events_of(a, kind, wanted));
  }

  std::vector<Fault> run() {
    order_.run([&](ActorId a) { return go_on(a); });
    return faults();
  }

 private:
  // Instructions of a code with which knowledge comes or goes, or that somebody wants to hear of.
  struct Event {
    std::size_t in_turn;
    std::optional<TransferId> received, sent;  // the turn's numbers
    bool wanted;
  };
  std::vector<Event> events_of(ActorId a, TurnCodeId kind, const Wanted& wanted) const {
    const std::vector<Instruction>& all = p_.actors[a].code.kinds()[kind].instructions;
    std::vector<Event> events;
    for (std::size_t k = 0; k < all.size(); ++k) {
      const Event e{k, received_by(all[k]), sent_by(all[k]), wanted && wanted(a, kind, k)};
      if (e.received || e.sent || e.wanted) events.push_back(e);
    }
    return events;
  }

  // Plays an actor until it has to wait for a message.
  std::optional<TransferId> go_on(ActorId a) {
    const Code& code = p_.actors[a].code;
    auto& [turn, event] = at_[a];
    for (; turn < code.turns().size(); ++turn, event = 0) {
      const Turn& t = code.turns()[turn];
      for (const std::vector<Event>& events = events_[a][t.code]; event < events.size(); ++event) {
        const Event& e = events[event];
        const At at{t, e.in_turn};
        known_[a][a] = at.id();
        if (const auto received = e.received ? std::optional(code.transfer(t, *e.received)) : std::nullopt;
            received && !receive(a, *received))
          return received;
        if (e.wanted) come_(a, at, known_[a]);
        if (e.sent) send(a, code.transfer(t, *e.sent), at.id());
      }
    }
    return std::nullopt;
  }
  void send(ActorId a, TransferId t, InstructionId i) {
    sent_[t] = known_[a];
    sent_[t][a] = InstructionId(i.value + 1);  // to have the message is to know that it was read
    order_.happened(t);
  }
  bool receive(ActorId a, TransferId t) {
    if (sent_[t].empty()) return false;
    for (ActorId b : known_[a].ids()) known_[a][b] = std::max(known_[a][b], sent_[t][b]);
    sent_[t] = {};
    return true;
  }

  std::vector<Fault> faults() const {
    std::vector<Fault> all;
    for (ActorId a : p_.actors.ids()) {
      const Code& code = p_.actors[a].code;
      const auto [turn, event] = at_[a];
      if (turn == code.turns().size()) continue;
      const Turn& t = code.turns()[turn];
      const std::size_t k = events_[a][t.code][event].in_turn;
      all.push_back(fault(fmt::format("program, actor {}", a.value), "give the schedule another order",
                          "waits forever at instruction {}: {}", At{t, k}.id().value, p_.str(code.at(t, k))));
    }
    for (TransferId t : sent_.ids())
      if (all.empty() && !sent_[t].empty())
        all.push_back(fault("program", "", "'{}' is sent and never received", p_.routes[p_.transfers[t].route].name));
    return all;
  }

  const Program& p_;
  const Come& come_;
  IdVector<ActorId, IdVector<TurnCodeId, std::vector<Event>>> events_;
  struct Stand {
    std::size_t turn = 0, event = 0;  // the next ones
  };
  IdVector<ActorId, Stand> at_;
  IdVector<ActorId, Known> known_;
  IdVector<TransferId, Known> sent_;  // of a message under way: what its sender knew
  InOrder<TransferId> order_;
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

// Of all codes of an actor.
using WrittenInTurns = IdVector<TurnCodeId, std::vector<WrittenInTurn>>;
WrittenInTurns written_in_turns(const Program& p, const Code& code) {
  WrittenInTurns all(code.kinds().size());
  std::vector<char> known(code.kinds().size());
  for (const Turn& t : code.turns())
    if (!std::exchange(known[t.code.value], 1)) all[t.code] = written_in(p, code, t);
  return all;
}

}  // namespace

std::vector<Written> written_by(const Program& p, ActorId a) {
  const Code& code = p.actors[a].code;
  const WrittenInTurns kinds = written_in_turns(p, code);
  std::vector<Written> written;
  for (const Turn& t : code.turns())
    for (const auto& [at, number] : kinds[t.code])
      written.push_back({InstructionId(t.first.value + at), code.transfer(t, number)});
  return written;
}

std::vector<Fault> play(const Program& p, const Wanted& wanted, const Come& come) {
  return Play(p, wanted, come).run();
}

std::vector<Fault> settle_order(Program& p) {
  IdVector<ActorId, WrittenInTurns> written;
  for (const ActorProgram& a : p.actors) written.push_back(written_in_turns(p, a.code));
  const auto writes = [&](ActorId a, TurnCodeId kind, std::size_t in_turn) {
    return std::ranges::any_of(written[a][kind], [&](const WrittenInTurn& w) { return w.at == in_turn; });
  };
  return play(p, writes, [&](ActorId a, At at, const Known& known) {
    for (const WrittenInTurn& w : written[a][at.turn.code]) {
      if (w.at != at.in_turn) continue;
      Transfer& t = p.transfers[p.actors[a].code.transfer(at.turn, w.transfer)];
      t.posted = known[p.routes[t.route].target];
    }
  });
}

}  // namespace stretto
