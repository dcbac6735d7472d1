#include "stretto/program/memory.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "stretto/base/pack.h"
#include "stretto/base/text.h"

namespace stretto {
namespace {

constexpr u64 absent = ~u64(0);
u64 aligned(u64 n) { return (n + 63) / 64 * 64; }

class Planner {
 public:
  Planner(Program& p, int actor) : p_(p), s_(*p.step), a_(p.actors[std::size_t(actor)]) {}

  void run() {
    persistent();
    std::size_t scratch = 0;
    i64 clock = 0;
    for (Instruction& i : a_.code) {
      if (Run* r = std::get_if<Run>(&i)) {
        const Calls& calls = *p_.calls[r->task];
        r->args = std::uint32_t(a_.slots.size());
        for (std::uint32_t b = 0; b < calls.buffers.size(); ++b) bind(*r, calls, b, clock);
        scratch = std::max(scratch, calls.scratch);
        clock += std::max<i64>(1, i64(calls.calls.size()));
      } else if (const Send* send = std::get_if<Send>(&i)) {
        transfer(p_.transfers[send->transfer], true, clock++);
      } else {
        transfer(p_.transfers[std::get<Receive>(i).transfer], false, clock++);
      }
    }
    place_activations();
    a_.bytes[std::size_t(Arena::scratch)] = aligned(scratch);
  }

 private:
  u64 take(Arena arena, u64 bytes) {
    u64& top = a_.bytes[std::size_t(arena)];
    const u64 at = top;
    top += aligned(bytes);
    return at;
  }

  // Only what this actor's tasks touch gets memory here.
  void persistent() {
    std::map<Binding, bool> used;
    for (const Instruction& i : a_.code) {
      const Run* r = std::get_if<Run>(&i);
      if (!r) continue;
      const Task& t = s_.tasks[r->task];
      for (const auto* list : {&t.inputs, &t.outputs})
        for (const Binding& b : *list) used[b] = true;
    }
    const auto give = [&](Place place, std::size_t n, Arena arena, auto bytes) {
      std::vector<u64> at(n, absent);
      for (std::uint32_t i = 0; i < n; ++i)
        if (used.contains({place, i})) at[i] = take(arena, bytes(i));
      return at;
    };
    a_.param_at = give(Place::param, s_.params.size(), Arena::params, [&](auto i) { return s_.bytes(s_.params[i]); });
    a_.accumulator_at = give(Place::gradient, s_.accumulators.size(), Arena::gradients,
                             [&](auto i) { return s_.bytes(s_.params[s_.accumulators[i].param]); });
    a_.input_at = give(Place::input, s_.inputs.size(), Arena::inputs,
                       [&](auto i) { return s_.bytes(s_.inputs[i]) * u64(p_.microbatches); });
    a_.scalar_at =
        give(Place::scalar, s_.scalars.size(), Arena::results, [&](auto i) { return s_.bytes(s_.scalars[i]); });
    a_.output_at.assign(s_.outputs.size(), absent);
    for (std::uint32_t i = 0; i < s_.outputs.size(); ++i)
      if (used.contains({Place::output, i}) || used.contains({Place::outputs, i}))
        a_.output_at[i] = take(Arena::results, s_.outputs[i].bytes * u64(p_.microbatches));
    a_.squares_at = take(Arena::results, 8 * s_.params.size());
    a_.state_at.assign(s_.params.size(), {});
    for (std::uint32_t i = 0; i < s_.params.size(); ++i)
      for (int k = 0; k < p_.states; ++k)
        a_.state_at[i].push_back(used.contains({Place::state, i * std::uint32_t(p_.states) + std::uint32_t(k)})
                                     ? take(Arena::state, s_.bytes(s_.params[i]))
                                     : absent);
  }

  Slot persistent_slot(const Binding& b, std::uint32_t microbatch) const {
    switch (b.place) {
      case Place::param:
        return {Arena::params, a_.param_at[b.index]};
      case Place::gradient:
        return {Arena::gradients, a_.accumulator_at[b.index]};
      case Place::input:
        return {Arena::inputs, a_.input_at[b.index] + s_.bytes(s_.inputs[b.index]) * microbatch};
      case Place::scalar:
        return {Arena::results, a_.scalar_at[b.index]};
      case Place::output:
        return {Arena::results, a_.output_at[b.index] + s_.outputs[b.index].bytes * microbatch};
      case Place::outputs:
        return {Arena::results, a_.output_at[b.index]};
      case Place::state:
        return {Arena::state,
                a_.state_at[b.index / u64(std::max(1, p_.states))][b.index % std::size_t(std::max(1, p_.states))]};
      case Place::square:
        return {Arena::results, a_.squares_at + 8 * u64(b.index)};
      case Place::squares:
        return {Arena::results, a_.squares_at};
      case Place::value:
        break;
    }
    STRETTO_ASSERT(false, "not persistent");
  }

  void bind(const Run& r, const Calls& calls, std::uint32_t buffer, i64 clock) {
    const BodyBuffer& b = calls.buffers[buffer];
    const Task& t = s_.tasks[r.task];
    const std::uint32_t slot = std::uint32_t(a_.slots.size());
    a_.slots.push_back({});
    if (b.kind == BodyBuffer::Kind::temporary) {
      if (b.first < 0) return;
      lives_.push_back({b.bytes, clock + b.first, clock + b.last});
      owners_.push_back({slot});
      return;
    }
    const Binding& binding = b.kind == BodyBuffer::Kind::argument ? t.inputs[b.index] : t.outputs[b.index];
    if (binding.place != Place::value) {
      a_.slots[slot] = persistent_slot(binding, r.microbatch);
      return;
    }
    if (b.first < 0) return;
    const u64 key = (u64(binding.index) << 32) | r.microbatch;
    const auto [it, fresh] = live_.try_emplace(key, lives_.size());
    if (fresh) {
      lives_.push_back({b.bytes, clock + b.first, clock + b.last});
      owners_.push_back({slot});
    } else {
      lives_[it->second].last = std::max(lives_[it->second].last, clock + b.last);
      owners_[it->second].push_back(slot);
    }
  }

  // A value lives on its sender until it is sent, and on its receiver from when it is received.
  void transfer(Transfer& t, bool sending, i64 clock) {
    const auto end = [&](std::size_t k) -> Slot& { return sending ? t.pieces[k].from : t.pieces[k].to; };
    if (t.value != ~0u) {
      const auto [it, fresh] = live_.try_emplace((u64(t.value) << 32) | t.microbatch, lives_.size());
      if (fresh) {
        lives_.push_back({t.pieces[0].bytes, clock, clock});
        owners_.push_back({});
      }
      lives_[it->second].last = std::max(lives_[it->second].last, clock);
      ends_.push_back({&end(0), it->second});
    } else if (t.squares.empty()) {
      end(0) = persistent_slot(t.what, 0);
    } else {
      for (std::size_t k = 0; k < t.squares.size(); ++k) end(k) = persistent_slot({Place::square, t.squares[k]}, 0);
    }
  }

  void place_activations() {
    const Packing packing = pack(lives_);
    for (const auto& [slot, live] : ends_) *slot = {Arena::activations, packing.offsets[live]};
    for (std::size_t i = 0; i < lives_.size(); ++i)
      for (std::uint32_t slot : owners_[i]) a_.slots[slot] = {Arena::activations, packing.offsets[i]};
    a_.bytes[std::size_t(Arena::activations)] = packing.bytes;
    a_.activation_bound = live_bound(lives_);
  }

  Program& p_;
  const Step& s_;
  ActorProgram& a_;
  std::vector<Lifetime> lives_;
  std::vector<std::vector<std::uint32_t>> owners_;   // slots of each
  std::unordered_map<u64, std::size_t> live_;        // (value, microbatch) -> index into lives_
  std::vector<std::pair<Slot*, std::size_t>> ends_;  // of transfers, with what they carry
};

}  // namespace

void plan_memory(Program& p, int actor) { Planner(p, actor).run(); }

std::string_view name_of(Arena a) {
  constexpr std::string_view names[] = {"params", "gradients", "state", "inputs", "results", "activations", "scratch"};
  return names[std::size_t(a)];
}

namespace {
// What each task holds while it runs: values it reads, values it makes for others, and the most of its own temporaries.
std::string tasks_str(const Program& p) {
  std::vector<std::vector<std::string>> rows{{"task", "reads", "keeps for others", "temporaries", "workspace"}};
  for (std::size_t t = 0; t < p.step->tasks.size(); ++t) {
    const Task& task = p.step->tasks[t];
    if (task.part > Part::W) break;
    const auto total = [&](const std::vector<Binding>& list) {
      double bytes = 0;
      for (const Binding& b : list)
        if (b.place == Place::value) bytes += double(p.step->values[b.index].bytes);
      return human_bytes(bytes);
    };
    std::vector<Lifetime> own;
    for (const BodyBuffer& b : p.calls[t]->buffers)
      if (b.kind == BodyBuffer::Kind::temporary) own.push_back({b.bytes, b.first, b.last});
    rows.push_back({fmt::format("{} {}", name_of(task.part), task.piece), total(task.inputs), total(task.outputs),
                    human_bytes(double(live_bound(own))), human_bytes(double(p.calls[t]->scratch))});
  }
  return table(rows);
}
}  // namespace

std::string Program::memory_str() const {
  std::vector<std::vector<std::string>> rows{{"actor"}};
  for (std::size_t k = 0; k < arena_count; ++k) rows[0].push_back(std::string(name_of(Arena(k))));
  rows[0].insert(rows[0].end(), {"total", "live bound", "planned/bound"});
  for (std::size_t a = 0; a < actors.size(); ++a) {
    u64 total = 0;
    rows.push_back({fmt::format("{}", a)});
    for (u64 b : actors[a].bytes) rows.back().push_back(human_bytes(double(b))), total += b;
    rows.back().push_back(human_bytes(double(total)));
    const double bound = double(actors[a].activation_bound);
    rows.back().push_back(human_bytes(bound));
    rows.back().push_back(
        bound > 0 ? fmt::format("{:.3f}", double(actors[a].bytes[std::size_t(Arena::activations)]) / bound) : "1");
  }
  return table(rows) + "\n" + tasks_str(*this);
}

namespace {
std::string instruction_str(const Program& p, const Instruction& i) {
  if (const Run* r = std::get_if<Run>(&i)) {
    const Task& t = p.step->tasks[r->task];
    return fmt::format("run {}{} microbatch {}{}", name_of(t.part), t.piece, r->microbatch,
                       r->overwrite ? "" : " accumulate");
  }
  const bool sending = std::holds_alternative<Send>(i);
  const Transfer& t = p.transfers[sending ? std::get<Send>(i).transfer : std::get<Receive>(i).transfer];
  const Route& r = p.routes[t.route];
  const std::string microbatch = t.value != ~0u ? fmt::format(" microbatch {}", t.microbatch) : "";
  return fmt::format("{} {} {} {}{}, {}", sending ? "send" : "receive", r.name, sending ? "to" : "from",
                     sending ? r.target : r.source, microbatch, human_bytes(double(r.bytes)));
}
}  // namespace

namespace {
// Plays the program with counters instead of messages. Routes are first in first out and have one sender and one
// receiver, so whether anybody gets stuck does not depend on timing: one play decides it, over two steps.
std::vector<Fault> play(const Program& p) {
  std::vector<u64> sent(p.routes.size(), 0), taken(p.routes.size(), 0);
  std::vector<std::size_t> at(p.actors.size(), 0);
  const auto end = [&](std::size_t a) { return 2 * p.actors[a].code.size(); };
  const auto next = [&](std::size_t a) -> const Instruction& {
    return p.actors[a].code[at[a] % p.actors[a].code.size()];
  };
  const auto step = [&](std::size_t a) {
    if (const Send* s = std::get_if<Send>(&next(a))) {
      const std::uint32_t r = p.transfers[s->transfer].route;
      if (sent[r] - taken[r] >= u64(p.routes[r].capacity)) return false;
      ++sent[r];
    } else if (const Receive* v = std::get_if<Receive>(&next(a))) {
      const std::uint32_t r = p.transfers[v->transfer].route;
      if (sent[r] == taken[r]) return false;
      ++taken[r];
    }
    ++at[a];
    return true;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t a = 0; a < p.actors.size(); ++a)
      while (at[a] < end(a) && step(a)) moved = true;
  }
  std::vector<Fault> faults;
  for (std::size_t a = 0; a < p.actors.size(); ++a)
    if (at[a] < end(a))
      faults.push_back(fault(fmt::format("program, actor {}", a), "give the schedule another order",
                             "waits forever at instruction {}: {}", at[a] % p.actors[a].code.size(),
                             instruction_str(p, next(a))));
  for (std::size_t r = 0; r < p.routes.size(); ++r)
    if (faults.empty() && sent[r] != taken[r])
      faults.push_back(fault("program", "", "route '{}' is not empty at the end of a step", p.routes[r].name));
  return faults;
}
}  // namespace

// Every argument of every run lies inside its arena, and buffers that are alive together do not overlap.
std::vector<Fault> verify(const Program& p) {
  std::vector<Fault> faults = play(p);
  for (std::size_t a = 0; a < p.actors.size(); ++a) {
    const ActorProgram& actor = p.actors[a];
    for (const Instruction& i : actor.code) {
      const Run* run = std::get_if<Run>(&i);
      if (!run) continue;
      const Run& r = *run;
      const Calls& calls = *p.calls[r.task];
      for (std::size_t b = 0; b < calls.buffers.size(); ++b) {
        if (calls.buffers[b].first < 0) continue;
        const Slot& s = actor.slots[r.args + b];
        if (s.offset == absent || s.offset + calls.buffers[b].bytes > actor.bytes[std::size_t(s.arena)])
          faults.push_back(fault(fmt::format("program, actor {}", a), "",
                                 "buffer {} of task {} lies outside of arena {}", b, r.task, name_of(s.arena)));
      }
    }
  }
  return faults;
}

std::string Program::str() const {
  std::string text;
  for (std::size_t a = 0; a < actors.size(); ++a) {
    text += fmt::format("actor {}: {} instructions\n", a, actors[a].code.size());
    for (const Instruction& i : actors[a].code) {
      text += "  " + instruction_str(*this, i) + "\n";
    }
  }
  return text;
}

}  // namespace stretto
