// What the planner and the order of instructions promise, checked on the finished program.
#include <algorithm>
#include <map>
#include <set>

#include "stretto/program/emit/touches.h"
#include "stretto/program/program.h"
#include "stretto/program/proofs/races.h"

namespace stretto {
namespace {

std::string where(ActorId a) { return fmt::format("program, actor {}", a.value); }

// What a run touches, as memory.
struct Memory {
  Arena arena;
  std::optional<ActorId> elsewhere;
  u64 from, to;
  bool written;
};
bool collide(const Memory& x, const Memory& y) {
  return (x.written || y.written) && x.arena == y.arena && x.elsewhere == y.elsewhere && x.from < y.to && y.from < x.to;
}
std::vector<Memory> memory_of(const Program& p, ActorId a, const Run& r, KnownTouches& touches) {
  std::vector<Memory> all;
  for (const Touch& t : touches.of(r)) {
    const Slot& s = p.actors[a].slots[SlotId(r.args.value + t.buffer.value)];
    all.push_back({s.arena, s.elsewhere, s.offset + t.span.from, s.offset + t.span.to, t.written});
  }
  return all;
}
std::vector<Memory> sent(const Transfer& t) {
  std::vector<Memory> all;
  for (const Extent& e : t.extents)
    if (!t.direct) all.push_back({e.from.arena, {}, e.from.offset, e.from.offset + e.bytes, false});
  return all;
}

// Every argument of every run lies inside its arena, and none that is written where ranks share what they read.
void check_arguments(const Program& p, ActorId a, std::vector<Fault>& faults) {
  const ActorProgram& actor = p.actors[a];
  struct Argument {  // of a turn's code
    SlotId slot;
    u64 bytes;
    TaskId task;
    BufferId buffer;
    bool written;
  };
  IdVector<TurnCodeId, std::vector<Argument>> arguments;
  for (const TurnCode& kind : actor.code.kinds()) {
    std::vector<Argument> all;
    for (const Instruction& i : kind.instructions)
      if (const Run* r = task_of(i)) {
        const auto& buffers = p.calls[r->task]->buffers;
        for (BufferId b : buffers.ids())
          if (buffers[b].touched)
            all.push_back(
                {SlotId(r->args.value + b.value), buffers[b].bytes, r->task, b, buffers[b].result() != nullptr});
      }
    arguments.push_back(std::move(all));
  }
  for (const Turn& t : actor.code.turns())
    for (const Argument& x : arguments[t.code]) {
      const Slot& s = actor.slots[SlotId(t.slots.value + x.slot.value)];
      const ActorProgram& whose = s.elsewhere ? p.actors[*s.elsewhere] : actor;
      if (s.offset + x.bytes > whose.bytes[s.arena])
        faults.push_back(fault(where(a), "", "buffer {} of task {} lies outside of arena {}", x.buffer.value,
                               x.task.value, name_of(s.arena)));
      if (x.written && s.arena == Arena::frozen)
        faults.push_back(fault(where(a), "", "task {} writes buffer {} into arena {}, which ranks share", x.task.value,
                               x.buffer.value, name_of(s.arena)));
    }
}

// The turns of an actor in whose codes some instruction is looked for.
template <class Looked>
std::vector<Instruction> in_turns_with(const Code& code, Looked looked) {
  std::vector<char> kinds;
  for (const TurnCode& kind : code.kinds()) kinds.push_back(std::ranges::any_of(kind.instructions, looked));
  std::vector<Instruction> all;
  for (const Turn& t : code.turns())
    if (kinds[t.code.value])
      for (const Instruction& i : code.written_out(t)) all.push_back(i);
  return all;
}

// Every bucket is summed once: after all that is added to it, before all that reads it.
class SumCheck {
 public:
  SumCheck(const Program& p, ActorId a, KnownTouches& touches, std::vector<Fault>& faults)
      : p_(p), a_(a), touches_(touches), faults_(faults), stage_(p.step->buckets.size(), Stage::open) {
    for (BucketId b : p.step->buckets.ids())
      for (AccumulatorId g : p.step->buckets[b].accumulators) bucket_of_[g] = b;
  }
  void run() {
    if (p_.step->buckets.empty()) return;
    for (const Instruction& i : p_.actors[a_].code)
      match(
          i, [&](const Start& s) { move(s.run.task, Stage::open, Stage::started); },
          [&](const Await& w) { move(w.task, Stage::started, Stage::done); }, [&](const Run& r) { look(r); },
          [](const Send&) {}, [](const Receive&) {});
    for (BucketId b : stage_.ids())
      if (p_.step->buckets[b].actor == a_) check(stage_[b] == Stage::done, b);
  }

 private:
  enum class Stage : std::uint8_t { open, started, done };
  void move(TaskId task, Stage from, Stage to) {
    const BucketId* b = std::get_if<BucketId>(&p_.step->tasks[task].about);
    if (!b) return;
    check(p_.step->buckets[*b].actor == a_ && stage_[*b] == from, *b);
    stage_[*b] = to;
  }
  void look(const Run& r) {
    if (bucket_of_.empty()) return;
    const bool adds = adds_to_gradients(p_.task(r).part);
    for (const Touch& t : touches_.of(r)) {
      if (adds ? !t.written : !t.read) continue;
      const Binding* x = binding_of(p_, r, t.buffer);
      const AccumulatorId* g = x ? as<AccumulatorId>(*x) : nullptr;
      const auto b = g ? bucket_of_.find(*g) : bucket_of_.end();
      if (b != bucket_of_.end()) check(stage_[b->second] == (adds ? Stage::open : Stage::done), b->second);
    }
  }
  void check(bool right, BucketId b) {
    if (!right)
      faults_.push_back(fault(where(a_), "", "the sum of bucket {}, of stage {}, is out of order", b.value,
                              p_.step->buckets[b].stage.value));
  }

  const Program& p_;
  const ActorId a_;
  KnownTouches& touches_;
  std::vector<Fault>& faults_;
  IdVector<BucketId, Stage> stage_;
  std::map<AccumulatorId, BucketId> bucket_of_;
};

bool starts_or_awaits(const Instruction& i) {
  return match(
      i, [](const OneOf<Start, Await> auto&) { return true; },
      [](const OneOf<Run, Send, Receive> auto&) { return false; });
}

// Every collective that is started is awaited once, and until then nobody else touches what it uses.
class StartedCheck {
 public:
  StartedCheck(const Program& p, ActorId a, KnownTouches& touches, std::vector<Fault>& faults)
      : p_(p), a_(a), touches_(touches), faults_(faults) {}
  void run() {
    if (p_.actors[a_].collectives == 0 && in_turns_with(p_.actors[a_].code, starts_or_awaits).empty()) return;
    for (const Instruction& i : p_.actors[a_].code)
      match(
          i, [&](const Start& s) { start(s, i); }, [&](const Await& w) { await(w, i); },
          [&](const Run& r) { look(r, i); }, [&](const Send& s) { look(sent(p_.transfers[s.transfer]), i); },
          [](const Receive&) {});
    for (const auto& [collective, x] : under_way_) wrong(x.start, "nobody awaits it");
  }

 private:
  struct UnderWay {
    Start start;
    std::vector<Memory> memory;
  };
  void start(const Start& s, const Instruction& i) {
    const Calls& body = *p_.calls[s.run.task];
    for (CallId c : ids(calls_of(s.run, body)))
      if (!body.graph.node(body.calls[c].node).op->collective) wrong(i, "it starts what is no collective");
    look(s.run, i);
    under_way_[s.collective] = {s, memory_of(p_, a_, s.run, touches_)};
    if (!seen_.insert(s.collective).second) wrong(i, "its number is taken");
  }
  void await(const Await& w, const Instruction& i) {
    const auto it = under_way_.find(w.collective);
    if (it == under_way_.end() || it->second.start.run.task != w.task) return wrong(i, "it is not under way");
    under_way_.erase(it);
  }
  void look(const Run& r, const Instruction& i) {
    if (!under_way_.empty()) look(memory_of(p_, a_, r, touches_), i);
  }
  void look(const std::vector<Memory>& mine, const Instruction& i) {
    for (const auto& [collective, x] : under_way_)
      for (const Memory& m : mine)
        if (std::any_of(x.memory.begin(), x.memory.end(), [&](const Memory& its) { return collide(m, its); }))
          return wrong(i, "it touches what a collective still works on");
  }
  void wrong(const Instruction& i, std::string_view what) {
    faults_.push_back(fault(where(a_), "", "{}: {}", p_.str(i), what));
  }

  const Program& p_;
  const ActorId a_;
  KnownTouches& touches_;
  std::vector<Fault>& faults_;
  std::map<CollectiveId, UnderWay> under_way_;
  std::set<CollectiveId> seen_;
};

// When a task runs in parts, each of its calls is run or started once.
void check_parts(const Program& p, ActorId a, std::vector<Fault>& faults) {
  std::map<std::pair<TaskId, MicrobatchId>, std::set<CallId>> seen;
  const auto is_part = [](const Instruction& i) { return task_of(i) && task_of(i)->calls; };
  for (const Instruction& i : in_turns_with(p.actors[a].code, is_part)) {
    const Run* r = task_of(i);
    if (!r || !r->calls) continue;
    std::set<CallId>& calls = seen[{r->task, r->microbatch}];
    for (CallId c : ids(*r->calls))
      if (!calls.insert(c).second) faults.push_back(fault(where(a), "", "{}: call {} runs twice", p.str(i), c.value));
  }
  for (const auto& [part, calls] : seen)
    if (const std::size_t all = p.calls[part.first]->calls.size(); calls.size() != all)
      faults.push_back(fault(where(a), "", "{} of microbatch {} runs {} of its {} calls",
                             str(p.step->tasks[part.first]), part.second.value, calls.size(), all));
}

// Both ends of every message lie inside their arenas.
void check_transfers(const Program& p, std::vector<Fault>& faults) {
  for (const Transfer& t : p.transfers) {
    const Route& route = p.routes[t.route];
    const auto check = [&](const Slot& s, u64 bytes, ActorId actor) {
      if (s.offset + bytes > p.actors[actor].bytes[s.arena])
        faults.push_back(
            fault(where(actor), "", "message '{}' lies outside of arena {}", route.name, name_of(s.arena)));
    };
    for (const Extent& e : t.extents) {
      if (!t.direct) check(e.from, e.bytes, route.source);
      check(e.to, e.bytes, route.target);
      if (e.to.arena == Arena::frozen)
        faults.push_back(fault(where(route.target), "", "message '{}' is written into arena {}, which ranks share",
                               route.name, name_of(e.to.arena)));
    }
  }
}

}  // namespace

std::vector<Fault> verify(const Program& p) {
  std::vector<Fault> faults;
  KnownTouches touches(p);
  for (ActorId a : p.actors.ids()) check_arguments(p, a, faults);
  check_transfers(p, faults);
  for (ActorId a : p.actors.ids()) {
    check_parts(p, a, faults);
    SumCheck(p, a, touches, faults).run();
    StartedCheck(p, a, touches, faults).run();
  }
  if (faults.empty()) faults = races(p);
  return faults;
}

}  // namespace stretto
