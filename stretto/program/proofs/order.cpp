#include "stretto/program/proofs/order.h"

#include <algorithm>
#include <map>
#include <set>

namespace stretto {
namespace {

class Play {
 public:
  using Come = std::function<void(ActorId, InstructionId, const Known&)>;
  Play(const Program& p, const Come& come)
      : p_(p),
        come_(come),
        at_(p.actors.size(), InstructionId(0)),
        known_(p.actors.size(), Known(p.actors.size(), InstructionId(0))),
        sent_(p.transfers.size()),
        waiting_(p.transfers.size()) {}

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
  // Plays an actor until it has to wait for a message. Whoever sends that wakes it.
  void go_on(ActorId a) {
    const auto& code = p_.actors[a].code;
    for (InstructionId& i = at_[a]; code.has(i); i = InstructionId(i.value + 1)) {
      known_[a][a] = i;
      const bool goes = match(
          code[i], [&](const Receive& r) { return receive(a, r.transfer); },
          [](const OneOf<Run, Send, Start, Await> auto&) { return true; });
      if (!goes) return;
      come_(a, i, known_[a]);
      if (const auto sent = sent_by(code[i])) send(a, *sent);
    }
  }
  void send(ActorId a, TransferId t) {
    sent_[t] = known_[a];
    sent_[t][a] = InstructionId(at_[a].value + 1);  // whoever has the message knows that it was read
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
      if (const auto& code = p_.actors[a].code; code.has(at_[a]))
        all.push_back(fault(fmt::format("program, actor {}", a.value), "give the schedule another order",
                            "waits forever at instruction {}: {}", at_[a].value, p_.str(code[at_[a]])));
    for (TransferId t : sent_.ids())
      if (all.empty() && !sent_[t].empty())
        all.push_back(fault("program", "", "'{}' is sent and never received", p_.routes[p_.transfers[t].route].name));
    return all;
  }

  const Program& p_;
  const Come& come_;
  IdVector<ActorId, InstructionId> at_;
  IdVector<ActorId, Known> known_;
  IdVector<TransferId, Known> sent_;  // of a message under way: what its sender knew
  IdVector<TransferId, std::optional<ActorId>> waiting_;
  std::vector<ActorId> ready_;  // can go on
};

// What an actor's tasks make in the memory of others, found once per task.
class DirectResults {
 public:
  struct Result {
    ValueId value;
    BodyBuffer::Touched touched;
  };
  DirectResults(const Program& p, std::set<ValueId> direct)
      : p_(p), direct_(std::move(direct)), known_(p.step->tasks.size()) {}
  const std::vector<Result>& of(TaskId task) {
    std::optional<std::vector<Result>>& results = known_[task];
    if (results) return *results;
    results.emplace();
    for (const BodyBuffer& b : p_.calls[task]->buffers)
      if (const ResultId* result = b.result(); result && b.touched)
        if (const ValueId* v = as<ValueId>(p_.step->tasks[task].outputs[*result]); v && direct_.contains(*v))
          results->push_back({*v, *b.touched});
    return *results;
  }

 private:
  const Program& p_;
  std::set<ValueId> direct_;
  IdVector<TaskId, std::optional<std::vector<Result>>> known_;
};

}  // namespace

std::vector<Written> written_by(const Program& p, ActorId a) {
  const auto& code = p.actors[a].code;
  std::vector<Written> written;
  std::map<std::pair<ValueId, MicrobatchId>, TransferId> direct;  // whose first touch has not been found yet
  std::set<ValueId> values;
  for (const Instruction& i : code)
    if (const auto sent = sent_by(i); sent && p.transfers[*sent].direct) {
      const SentValue& v = *p.transfers[*sent].value();
      direct[{v.value, v.microbatch}] = *sent;
      values.insert(v.value);
    }
  DirectResults results(p, std::move(values));
  for (InstructionId i : code.ids()) {
    if (const auto sent = sent_by(code[i]); sent && !p.transfers[*sent].direct) written.push_back({i, *sent});
    const Run* r = task_of(code[i]);
    if (!r) continue;
    for (const DirectResults::Result& x : results.of(r->task)) {
      const CallRange calls = calls_of(*r, *p.calls[r->task]);
      if (x.touched.last < calls.from || x.touched.first >= calls.to) continue;
      const auto it = direct.find({x.value, r->microbatch});
      if (it == direct.end()) continue;
      written.push_back({i, it->second});
      direct.erase(it);
    }
  }
  STRETTO_ASSERT(direct.empty(), "what is made in another's memory is made by a run");
  return written;
}

std::vector<Fault> play(const Program& p, const std::function<void(ActorId, InstructionId, const Known&)>& come) {
  return Play(p, come).run();
}

std::vector<Fault> settle_order(Program& p) {
  IdVector<ActorId, std::vector<Written>> written;
  for (ActorId a : p.actors.ids()) written.push_back(written_by(p, a));
  IdVector<ActorId, std::size_t> next(p.actors.size(), 0);
  return play(p, [&](ActorId a, InstructionId i, const Known& known) {
    for (std::size_t& n = next[a]; n < written[a].size() && written[a][n].at == i; ++n) {
      Transfer& t = p.transfers[written[a][n].transfer];
      t.posted = known[p.routes[t.route].target];
    }
  });
}

}  // namespace stretto
