// What the planner and the order of instructions promise, checked on the finished program.
#include <algorithm>
#include <map>
#include <set>

#include "stretto/program/program.h"
#include "stretto/stage/storage.h"

namespace stretto {
namespace {
void check_shared(const Program& p, std::size_t a, std::vector<Fault>& faults) {
  const auto& code = p.actors[a].code;
  std::map<Binding, std::size_t> used;  // parameters and gradients: the last instruction so far that touches them
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (const Run* r = task_of(code[i])) {
      const Task& t = p.step->tasks[r->task];
      for (const auto* list : {&t.inputs, &t.outputs})
        for (const Binding& b : *list)
          if (b.place == Place::param) used[b] = i;
    } else if (const Receive* v = std::get_if<Receive>(&code[i])) {
      const Transfer& t = p.transfers[v->transfer];
      const auto last = used.find(t.what);
      if (t.value == ~0u && t.squares.empty() && last != used.end() && t.posted <= last->second)
        faults.push_back(fault(fmt::format("program, actor {}", a), "", "{} {} may be overwritten while it is in use",
                               "parameter", t.what.index));
    }
  }
}
// Every bucket is summed once: behind all that is added to it, before all that reads it.
void check_sums(const Program& p, std::size_t a, std::vector<Fault>& faults) {
  std::vector<int> stage(p.buckets.size(), 0);  // 1: started, 2: done
  std::map<std::uint32_t, std::uint32_t> bucket_of;
  for (std::uint32_t b = 0; b < p.buckets.size(); ++b)
    for (std::uint32_t g : p.buckets[b].accumulators) bucket_of[g] = b;
  const auto check = [&](bool right, std::uint32_t b) {
    if (!right)
      faults.push_back(fault(fmt::format("program, actor {}", a), "", "sum {} is out of order: {}", b,
                             p.str(Instruction(StartSum{b}))));
  };
  for (const Instruction& i : p.actors[a].code) {
    if (const StartSum* s = std::get_if<StartSum>(&i)) {
      check(p.buckets[s->bucket].actor == int(a) && stage[s->bucket]++ == 0, s->bucket);
    } else if (const AwaitSum* s = std::get_if<AwaitSum>(&i)) {
      check(stage[s->bucket]++ == 1, s->bucket);
    } else if (const Run* r = std::get_if<Run>(&i)) {
      const Task& t = p.step->tasks[r->task];
      const bool adds = adds_to_gradients(t.part);
      for (const Binding& x : adds ? t.outputs : t.inputs)
        if (const auto b = bucket_of.find(x.index); x.place == Place::gradient && b != bucket_of.end())
          check(stage[b->second] == (adds ? 0 : 2), b->second);
    }
  }
  for (std::uint32_t b = 0; b < p.buckets.size(); ++b)
    if (p.buckets[b].actor == int(a)) check(stage[b] == 2, b);
}
// Every collective that is started is awaited once, before anybody reads what it makes.
void check_started(const Program& p, std::size_t a, std::vector<Fault>& faults) {
  std::map<std::uint32_t, const Start*> under_way;  // by number
  std::set<std::uint32_t> numbers;
  const auto wrong = [&](const Instruction& i, std::string_view what) {
    faults.push_back(fault(fmt::format("program, actor {}", a), "", "{}: {}", p.str(i), what));
  };
  for (const Instruction& i : p.actors[a].code) {
    if (const Start* s = std::get_if<Start>(&i)) {
      under_way[s->number] = s;
      if (!numbers.insert(s->number).second) wrong(i, "its number is taken");
    } else if (const Await* w = std::get_if<Await>(&i)) {
      const auto it = under_way.find(w->number);
      if (it == under_way.end() || it->second->run.task != w->task)
        wrong(i, "it is not under way");
      else
        under_way.erase(it);
    } else if (const Run* r = std::get_if<Run>(&i)) {
      for (const auto& [number, s] : under_way)
        for (const Binding& made : p.step->tasks[s->run.task].outputs) {
          const std::vector<Binding>& read = p.step->tasks[r->task].inputs;
          // A gathered parameter may be read while the next gather of it is under way.
          if (!gathered(*p.step, made.index) && s->run.microbatch == r->microbatch &&
              std::find(read.begin(), read.end(), made) != read.end())
            wrong(i, "it reads what is still being reduced");
        }
    }
  }
  for (const auto& [number, s] : under_way) wrong(Instruction(*s), "nobody awaits it");
}

// Both ends of every message lie inside their arenas.
void check_transfers(const Program& p, std::vector<Fault>& faults) {
  for (const Transfer& t : p.transfers) {
    const Route& route = p.routes[t.route];
    const auto check = [&](const Slot& s, u64 bytes, int actor) {
      if (s.offset == ~u64(0) || s.offset + bytes > p.actors[std::size_t(actor)].bytes[std::size_t(s.arena)])
        faults.push_back(fault(fmt::format("program, actor {}", actor), "", "message '{}' lies outside of arena {}",
                               route.name, name_of(s.arena)));
    };
    for (const Piece& piece : t.pieces) {
      if (!t.direct) check(piece.from, piece.bytes, route.source);
      check(piece.to, piece.bytes, route.target);
    }
  }
}
}  // namespace

// Every argument of every run lies inside its arena, and nobody overwrites parameters or gradients that another actor
// may still use: what the planner does not see because they have memory of their own.
std::vector<Fault> verify(const Program& p) {
  std::vector<Fault> faults;
  for (std::size_t a = 0; a < p.actors.size(); ++a) {
    const ActorProgram& actor = p.actors[a];
    for (const Instruction& i : actor.code) {
      const Run* run = task_of(i);
      if (!run) continue;
      const Run& r = *run;
      const Calls& calls = *p.calls[r.task];
      for (BufferId b : calls.buffers.ids()) {
        if (!calls.buffers[b].touched) continue;
        const Slot& s = actor.slots[r.args + b.value];
        const ActorProgram& whose = s.actor == Slot::own ? actor : p.actors[std::size_t(s.actor)];
        if (s.offset == ~u64(0) || s.offset + calls.buffers[b].bytes > whose.bytes[std::size_t(s.arena)])
          faults.push_back(fault(fmt::format("program, actor {}", a), "",
                                 "buffer {} of task {} lies outside of arena {}", b.value, r.task, name_of(s.arena)));
      }
    }
  }
  check_transfers(p, faults);
  for (std::size_t a = 0; a < p.actors.size(); ++a) check_shared(p, a, faults);
  for (std::size_t a = 0; a < p.actors.size(); ++a) check_sums(p, a, faults);
  for (std::size_t a = 0; a < p.actors.size(); ++a) check_started(p, a, faults);
  return faults;
}

}  // namespace stretto
