#include "stretto/program/emit/epilogue.h"

#include <algorithm>
#include <map>
#include <set>

#include "stretto/fuse/cost.h"
#include "stretto/program/proofs/order.h"

namespace stretto {
namespace {

// The actor that will probably finish last, by the cost of its tasks; messages take no time.
ActorId last_to_end(const Program& p) {
  IdVector<ActorId, double> time(p.actors.size(), 0);
  IdVector<TransferId, double> sent(p.transfers.size(), 0);
  std::map<const Calls*, double> known;
  const auto seconds = [&](const Run& r) {
    const Calls& calls = *p.calls[r.task];
    const auto [it, fresh] = known.try_emplace(&calls, 0);
    if (fresh) it->second = seconds_of(calls, Machine{});
    return it->second;
  };
  const auto all = [](ActorId, TurnCodeId, std::size_t) { return true; };
  play(p, all, [&](ActorId a, At at, const Known&) {
    match(
        p.actors[a].code.at(at.turn, at.in_turn), [&](const Run& r) { time[a] += seconds(r); },
        [&](const Send& s) { sent[s.transfer] = time[a]; },
        [&](const Receive& r) { time[a] = std::max(time[a], sent[r.transfer]); },
        [](const OneOf<Start, Await> auto&) {});
  });
  return ActorId(std::max_element(time.begin(), time.end()) - time.begin());
}

class Epilogue {
 public:
  explicit Epilogue(Emitter& e) : e_(e), p_(e.program), s_(e.step) {}

  void gradients() {
    gradients_to_owners();
    for (TaskId t : e_.index.scatters) done_.insert(reader_of(t));
    tasks(Part::combine);
  }

  void run() {
    for (ActorId a : p_.actors.ids()) norms_of_sums(a);
    tasks(Part::norm);
    tasks(Part::finite);
    if (updates_wait()) {
      share_squares();
      tasks(Part::clip);
      update();
    } else {
      update();
      squares_to_the_last();
    }
  }

 private:
  void tasks(Part part) {
    const auto it = e_.index.epilogue.find(part);
    if (it == e_.index.epilogue.end()) return;
    for (TaskId t : it->second)
      if (!done_.contains(t)) e_.everywhere(t);
  }

  void update() {
    tasks(Part::update);
    parameters_to_readers();
  }

  // Does an update read a number that is computed from the norm of all gradients?
  bool updates_wait() const {
    std::set<ScalarId> made;
    for (const Task& t : s_.tasks)
      if (t.part == Part::clip)
        for (const Binding& b : t.outputs)
          if (const ScalarId* x = as<ScalarId>(b)) made.insert(*x);
    if (!e_.index.epilogue.contains(Part::update)) return true;  // nothing could come first
    return std::any_of(s_.tasks.begin(), s_.tasks.end(), [&](const Task& t) {
      return t.part == Part::update && std::any_of(t.inputs.begin(), t.inputs.end(), [&](const Binding& b) {
               const ScalarId* x = as<ScalarId>(b);
               return x && made.contains(*x);
             });
    });
  }

  // The norm is only reported: one actor computes it and nobody else waits. It is the one that will probably finish
  // last, so that it does not have to wait either.
  void squares_to_the_last() {
    const auto it = e_.index.epilogue.find(Part::clip);
    if (it == e_.index.epilogue.end()) return;
    const ActorId last = last_to_end(p_);
    const IdVector<ActorId, std::vector<SquareId>> made = squares_made();
    for (ActorId a : p_.actors.ids())
      if (a != last && !made[a].empty()) e_.exchange(a, last, e_.transfers.of(in_ranges(made[a]), a, last));
    for (TaskId t : it->second) e_.run(last, t);
  }

  void gradients_to_owners() {
    for (AccumulatorId g : s_.accumulators.ids()) {
      const Accumulator& a = s_.accumulators[g];
      if (a.level != Level(0)) continue;
      const ActorId source = p_.actor_of(a.piece, a.pipe), target = p_.owners[a.param];
      if (source != target) e_.exchange(source, target, e_.transfers.of(g, source, target));
    }
  }

  // The task that takes what a scatter beside backward has made.
  TaskId reader_of(TaskId scatter) const {
    return s_.values[std::get<ValueId>(s_.tasks[scatter].outputs[ResultId(0)])].consumers.front();
  }

  // Every sum is awaited right before its norms are computed, in the order in which the sums were started.
  void norms_of_sums(ActorId actor) {
    std::vector<Start> started;
    for (const Instruction& i : p_.actors[actor].code)
      if (const Start* s = start_of(i); s && of_the_step(p_.task(s->run))) started.push_back(*s);
    const auto now = [&](TaskId task) {
      e_.run(actor, task);
      done_.insert(task);
    };
    for (const Start& s : started) {
      const Task& t = p_.task(s.run);
      e_.await(actor, s.collective, s.run.task);
      if (t.part == Part::sum) {
        for (AccumulatorId g : s_.buckets[std::get<BucketId>(t.about)].accumulators)
          now(e_.index.norm_of.at(s_.accumulators[g].param));
      } else {
        now(reader_of(s.run.task));
        now(e_.index.norm_of.at(t.param()));
      }
    }
  }
  static bool of_the_step(const Task& t) { return t.part == Part::sum || std::holds_alternative<ParamId>(t.about); }

  // Along a binary tree: up to the first actor, then all of them down again. Messages grow with the number of actors.
  void share_squares() {
    IdVector<ActorId, std::vector<SquareId>> below = squares_made();  // what an actor and those below it make
    const auto parent = [](ActorId a) { return ActorId((a.value - 1) / 2); };
    for (std::size_t i = p_.actors.size(); i-- > 1;) {
      const ActorId a(i), up = parent(a);
      if (below[a].empty()) continue;
      e_.exchange(a, up, e_.transfers.of(in_ranges(below[a]), a, up));
      below[up].insert(below[up].end(), below[a].begin(), below[a].end());
    }
    const SentSquares all{{{SquareId(0), static_cast<std::uint32_t>(s_.squares)}}};
    for (std::size_t i = 1; i < p_.actors.size() && s_.squares > 0; ++i)
      e_.exchange(parent(ActorId(i)), ActorId(i), e_.transfers.of(all, parent(ActorId(i)), ActorId(i)));
  }

  IdVector<ActorId, std::vector<SquareId>> squares_made() const {
    IdVector<ActorId, std::vector<SquareId>> made(p_.actors.size());
    for (Part part : {Part::norm, Part::finite})
      if (const auto it = e_.index.epilogue.find(part); it != e_.index.epilogue.end())
        for (TaskId t : it->second)
          made[*e_.actor_of(t, PipeId(0))].push_back(std::get<SquareId>(s_.tasks[t].outputs[ResultId(0)]));
    return made;
  }

  void parameters_to_readers() {
    const auto it = e_.index.epilogue.find(Part::update);
    if (it == e_.index.epilogue.end()) return;
    for (TaskId t : it->second) {
      const ParamId param = s_.tasks[t].param();
      const ActorId owner = p_.owners[param];
      for (ActorId reader : e_.readers_of(param))
        if (reader != owner) e_.exchange(owner, reader, e_.transfers.of(param, owner, reader));
    }
  }

  Emitter& e_;
  Program& p_;
  const Step& s_;
  std::set<TaskId> done_;  // tasks that have been emitted already
};

}  // namespace

void emit_gradients(Emitter& e) { Epilogue(e).gradients(); }

void emit_epilogue(Emitter& e) { Epilogue(e).run(); }

}  // namespace stretto
