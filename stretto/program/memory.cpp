#include "stretto/program/memory.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "stretto/base/pack.h"
#include "stretto/base/text.h"

namespace stretto {
namespace {

constexpr u64 absent = ~u64(0);

// Temporaries of a body alone: where they lie in a block that every run of it uses.
using Blocks = std::map<const Calls*, Packing>;

class Planner {
 public:
  Planner(Program& p, int actor, Blocks& blocks)
      : p_(p), s_(*p.step), actor_(actor), a_(p.actors[std::size_t(actor)]), blocks_(blocks) {}

  void run() {
    measure();
    persistent();
    std::size_t scratch = 0;
    for (std::size_t k = 0; k < a_.code.size(); ++k) {
      if (Run* r = std::get_if<Run>(&a_.code[k])) {
        const Calls& calls = *p_.calls[r->task];
        r->args = std::uint32_t(a_.slots.size());
        if (many_) block(calls);
        for (std::uint32_t b = 0; b < calls.buffers.size(); ++b) bind(*r, calls, b, clock_[k]);
        scratch = std::max(scratch, calls.scratch);
      } else if (const Send* send = std::get_if<Send>(&a_.code[k])) {
        transfer(p_.transfers[send->transfer], true, clock_[k]);
      } else if (const Receive* receive = std::get_if<Receive>(&a_.code[k])) {
        transfer(p_.transfers[receive->transfer], false, clock_[k]);
      }
    }
    place_activations();
    a_.bytes[std::size_t(Arena::scratch)] = aligned(scratch);
  }

  // Results that lie in other actors' memory, once that is planned.
  void point_elsewhere() {
    for (const auto& [slot, t] : elsewhere_) {
      a_.slots[slot] = p_.transfers[t].pieces[0].to;
      a_.slots[slot].actor = std::int16_t(p_.routes[p_.transfers[t].route].target);
    }
  }

 private:
  static u64 key_of(std::uint32_t value, std::uint32_t microbatch) { return (u64(value) << 32) | microbatch; }

  // What is written straight to others; whether there is so much that packing everything at once would take too long.
  void measure() {
    clock_ = instruction_clock(p_, a_);
    u64 buffers = 0;
    for (const Instruction& i : a_.code) {
      if (const Run* r = std::get_if<Run>(&i)) {
        buffers += p_.calls[r->task]->buffers.size();
      } else if (const Send* send = std::get_if<Send>(&i)) {
        const Transfer& t = p_.transfers[send->transfer];
        if (t.direct) direct_[key_of(t.value, t.microbatch)] = send->transfer;
      }
    }
    many_ = double(buffers) * double(buffers) * double(p_.actors.size()) > 1e8;
  }

  void block(const Calls& calls) {
    const auto [it, fresh] = blocks_.try_emplace(&calls);
    if (fresh) {
      std::vector<Lifetime> own;
      for (const BodyBuffer& b : calls.buffers)
        if (b.kind == BodyBuffer::Kind::temporary)
          own.push_back({b.first < 0 ? 0 : b.bytes, std::max(0, b.first), std::max(0, b.last)});
      it->second = pack(own);
    }
    block_ = &it->second;
    block_bytes_ = std::max(block_bytes_, u64(block_->bytes));
    in_block_ = 0;
  }

  u64 take(Arena arena, u64 bytes) {
    u64& top = a_.bytes[std::size_t(arena)];
    const u64 at = top;
    top += aligned(bytes);
    return at;
  }

  // Only what this actor's tasks touch gets memory here.
  void persistent() {
    std::set<Binding> used;                                  // but for what lies in buckets
    std::set<std::pair<std::uint32_t, std::uint32_t>> seen;  // task and copy of the accumulators
    for (const Instruction& i : a_.code) {
      const Run* r = std::get_if<Run>(&i);
      if (!r || !seen.insert({r->task, p_.copy_of(r->microbatch)}).second) continue;
      const Task& t = s_.tasks[r->task];
      for (const auto* list : {&t.inputs, &t.outputs})
        for (const Binding& b : *list) used.insert(in_pipe(*r, b));
    }
    const auto give = [&](Place place, std::size_t n, Arena arena, auto bytes) {
      std::vector<u64> at(n, absent);
      for (std::uint32_t i = 0; i < n; ++i)
        if (used.contains({place, i})) at[i] = take(arena, bytes(i));
      return at;
    };
    a_.param_at = give(Place::param, s_.params.size(), Arena::params, [&](auto i) { return s_.bytes(s_.params[i]); });
    for (const GradientBucket& b : p_.buckets)
      for (std::uint32_t g : b.accumulators) used.erase({Place::gradient, g});
    // Buckets first: what is summed together lies together. The gaps between accumulators stay zero.
    std::vector<u64> in_bucket(s_.accumulators.size(), absent);
    for (GradientBucket& b : p_.buckets) {
      if (b.actor != actor_) continue;
      b.offset = a_.bytes[std::size_t(Arena::gradients)];
      for (std::uint32_t g : b.accumulators) in_bucket[g] = take(Arena::gradients, s_.bytes(s_.accumulators[g].type));
      b.bytes = a_.bytes[std::size_t(Arena::gradients)] - b.offset;
    }
    a_.accumulator_at = give(Place::gradient, s_.accumulators.size(), Arena::gradients,
                             [&](auto i) { return s_.bytes(s_.accumulators[i].type); });
    for (std::size_t g = 0; g < in_bucket.size(); ++g)
      if (in_bucket[g] != absent) a_.accumulator_at[g] = in_bucket[g];
    a_.input_at = give(Place::input, s_.inputs.size(), Arena::inputs,
                       [&](auto i) { return s_.bytes(s_.inputs[i]) * u64(p_.microbatches); });
    a_.scalar_at =
        give(Place::scalar, s_.scalars.size(), Arena::results, [&](auto i) { return s_.bytes(s_.scalars[i]); });
    a_.output_at.assign(s_.outputs.size(), absent);
    for (std::uint32_t i = 0; i < s_.outputs.size(); ++i)
      if (used.contains({Place::output, i}) || used.contains({Place::outputs, i}))
        a_.output_at[i] = take(Arena::results, s_.outputs[i].bytes * u64(p_.microbatches));
    a_.squares_at = take(Arena::results, 8 * u64(s_.squares));
    a_.state_at.assign(s_.params.size(), {});
    for (std::uint32_t i = 0; i < s_.params.size(); ++i)
      for (int k = 0; k < p_.states; ++k)
        a_.state_at[i].push_back(used.contains({Place::state, i * std::uint32_t(p_.states) + std::uint32_t(k)})
                                     ? take(Arena::state, s_.state_bytes(i))
                                     : absent);
  }

  // What a weight gradient's binding means for the pipe that the run belongs to, or for its level.
  Binding in_pipe(const Run& r, Binding b) const {
    if (b.place == Place::gradient && s_.tasks[r.task].part == Part::W)
      b.index += std::uint32_t(s_.accumulators.size() / std::size_t(p_.schedule.pipes() + s_.levels)) *
                 p_.copy_of(r.microbatch);
    return b;
  }

  Slot persistent_slot(const Binding& b, std::uint32_t microbatch) const {
    const auto at = [](Arena arena, u64 offset) { return Slot{.arena = arena, .offset = offset}; };
    switch (b.place) {
      case Place::param:
        return at(Arena::params, a_.param_at[b.index]);
      case Place::gradient:
        return at(Arena::gradients, a_.accumulator_at[b.index]);
      case Place::input:
        return at(Arena::inputs, a_.input_at[b.index] + s_.bytes(s_.inputs[b.index]) * microbatch);
      case Place::scalar:
        return at(Arena::results, a_.scalar_at[b.index]);
      case Place::output:
        return at(Arena::results, a_.output_at[b.index] + s_.outputs[b.index].bytes * microbatch);
      case Place::outputs:
        return at(Arena::results, a_.output_at[b.index]);
      case Place::state:
        return at(Arena::state,
                  a_.state_at[b.index / u64(std::max(1, p_.states))][b.index % std::size_t(std::max(1, p_.states))]);
      case Place::square:
        return at(Arena::results, a_.squares_at + 8 * u64(b.index));
      case Place::squares:
        return at(Arena::results, a_.squares_at);
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
      if (many_) a_.slots[slot].offset = block_->offsets[in_block_++];
      if (b.first < 0 || many_) return;
      lives_.push_back({b.bytes, clock + b.first, clock + b.last});
      owners_.push_back({slot});
      return;
    }
    const Binding binding = in_pipe(r, b.kind == BodyBuffer::Kind::argument ? t.inputs[b.index] : t.outputs[b.index]);
    if (binding.place != Place::value) {
      a_.slots[slot] = persistent_slot(binding, r.microbatch);
      return;
    }
    if (b.first < 0) return;
    const u64 key = key_of(binding.index, r.microbatch);
    if (b.kind == BodyBuffer::Kind::result)
      if (const auto it = direct_.find(key); it != direct_.end()) {
        elsewhere_.push_back({slot, it->second});
        return;
      }
    const auto [it, fresh] = live_.try_emplace(key, lives_.size());
    if (fresh) {
      lives_.push_back({b.bytes, clock + b.first, clock + b.last});
      owners_.push_back({slot});
    } else {
      lives_[it->second].last = std::max(lives_[it->second].last, clock + b.last);
      owners_[it->second].push_back(slot);
    }
  }

  // A value lives on its sender until it is sent, unless it is made in the receiver's memory, and on its receiver from
  // the moment at which it can be written.
  void transfer(Transfer& t, bool sending, i64 clock) {
    if (sending && t.direct) return;
    const auto end = [&](std::size_t k) -> Slot& { return sending ? t.pieces[k].from : t.pieces[k].to; };
    if (t.value != ~0u) {
      const auto [it, fresh] = live_.try_emplace(key_of(t.value, t.microbatch), lives_.size());
      if (fresh) {
        lives_.push_back({t.pieces[0].bytes, sending ? clock : clock_[t.posted], clock});
        owners_.push_back({});
      }
      const i64 last = sending && t.released > 0 ? std::max(clock, clock_[t.released] - 1) : clock;
      lives_[it->second].last = std::max(lives_[it->second].last, last);
      ends_.push_back({&end(0), it->second});
    } else if (t.squares.empty()) {
      end(0) = persistent_slot(t.what, 0);
    } else {
      for (std::size_t k = 0; k < t.squares.size(); ++k) end(k) = persistent_slot({Place::square, t.squares[k]}, 0);
    }
  }

  void place_activations() {
    const Packing packing = many_ ? pack_quickly(lives_) : pack(lives_);
    STRETTO_ASSERT(disjoint(lives_, packing), "buffers overlap while both are alive");
    const auto at = [&](std::size_t i) {
      return Slot{.arena = Arena::activations, .offset = aligned(block_bytes_) + packing.offsets[i]};
    };
    for (const auto& [slot, live] : ends_) *slot = at(live);
    for (std::size_t i = 0; i < lives_.size(); ++i)
      for (std::uint32_t slot : owners_[i]) a_.slots[slot] = at(i);
    a_.bytes[std::size_t(Arena::activations)] = aligned(block_bytes_) + packing.bytes;
    a_.activation_bound = block_bytes_ + live_bound(lives_);
  }

  Program& p_;
  const Step& s_;
  int actor_;
  ActorProgram& a_;
  Blocks& blocks_;
  bool many_ = false;
  const Packing* block_ = nullptr;
  std::size_t in_block_ = 0;
  u64 block_bytes_ = 0;
  std::vector<i64> clock_;  // of every instruction, and the end
  std::vector<Lifetime> lives_;
  std::vector<std::vector<std::uint32_t>> owners_;                  // slots of each
  std::unordered_map<u64, std::size_t> live_;                       // (value, microbatch) -> index into lives_
  std::unordered_map<u64, std::uint32_t> direct_;                   // (value, microbatch) -> transfer
  std::vector<std::pair<std::uint32_t, std::uint32_t>> elsewhere_;  // slots of what is written to others, transfer
  std::vector<std::pair<Slot*, std::size_t>> ends_;                 // of transfers, with what they carry
};

}  // namespace

std::vector<i64> instruction_clock(const Program& p, const ActorProgram& a) {
  std::vector<i64> clock{0};
  for (const Instruction& i : a.code) {
    const Run* r = std::get_if<Run>(&i);
    clock.push_back(clock.back() + (r ? std::max<i64>(1, i64(p.calls[r->task]->calls.size())) : 1));
  }
  return clock;
}

void plan_memory(Program& p) {
  Blocks blocks;
  std::vector<Planner> planners;
  for (int a = 0; a < int(p.actors.size()); ++a) planners.emplace_back(p, a, blocks);
  for (Planner& planner : planners) planner.run();
  for (Planner& planner : planners) planner.point_elsewhere();
}

std::string_view name_of(Arena a) {
  constexpr std::string_view names[] = {"params", "gradients", "state", "inputs", "results", "activations", "scratch"};
  return names[std::size_t(a)];
}

std::string Program::str(const Instruction& i) const {
  const Program& p = *this;
  if (const Run* r = std::get_if<Run>(&i)) {
    const Task& t = p.step->tasks[r->task];
    return fmt::format("run {}{} microbatch {}{}", name_of(t.part), t.piece, r->microbatch,
                       t.part == Part::W && !r->overwrite ? " accumulate" : "");
  }
  const auto sum = [&](std::string_view what, std::uint32_t bucket) {
    const GradientBucket& b = p.buckets[bucket];
    return fmt::format("{} sum of {} gradients of stage {} over {}, {}", what, b.accumulators.size(), b.stage,
                       join(b.axes, ","), human_bytes(double(b.bytes)));
  };
  if (const StartSum* s = std::get_if<StartSum>(&i)) return sum("start", s->bucket);
  if (const AwaitSum* s = std::get_if<AwaitSum>(&i)) return sum("await", s->bucket);
  const bool sending = std::holds_alternative<Send>(i);
  const Transfer& t = p.transfers[sending ? std::get<Send>(i).transfer : std::get<Receive>(i).transfer];
  const Route& r = p.routes[t.route];
  const std::string microbatch = t.value != ~0u ? fmt::format(" microbatch {}", t.microbatch) : "";
  return fmt::format("{} {} {} {}{}, {}", sending ? "send" : "receive", r.name, sending ? "to" : "from",
                     sending ? r.target : r.source, microbatch, human_bytes(double(r.bytes)));
}

namespace {
void check_shared(const Program& p, std::size_t a, std::vector<Fault>& faults) {
  const auto& code = p.actors[a].code;
  std::map<Binding, std::size_t> used;  // parameters and gradients: the last instruction so far that touches them
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (const Run* r = std::get_if<Run>(&code[i])) {
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
      const bool adds = t.part == Part::W || t.part == Part::carry;
      for (const Binding& x : adds ? t.outputs : t.inputs)
        if (const auto b = bucket_of.find(x.index); x.place == Place::gradient && b != bucket_of.end())
          check(stage[b->second] == (adds ? 0 : 2), b->second);
    }
  }
  for (std::uint32_t b = 0; b < p.buckets.size(); ++b)
    if (p.buckets[b].actor == int(a)) check(stage[b] == 2, b);
}
}  // namespace

// Every argument of every run lies inside its arena, and nobody overwrites parameters or gradients that another actor
// may still use: what the planner does not see because they have memory of their own.
std::vector<Fault> verify(const Program& p) {
  std::vector<Fault> faults;
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
        const ActorProgram& whose = s.actor == Slot::own ? actor : p.actors[std::size_t(s.actor)];
        if (s.offset == absent || s.offset + calls.buffers[b].bytes > whose.bytes[std::size_t(s.arena)])
          faults.push_back(fault(fmt::format("program, actor {}", a), "",
                                 "buffer {} of task {} lies outside of arena {}", b, r.task, name_of(s.arena)));
      }
    }
  }
  for (std::size_t a = 0; a < p.actors.size(); ++a) check_shared(p, a, faults);
  for (std::size_t a = 0; a < p.actors.size(); ++a) check_sums(p, a, faults);
  return faults;
}

std::string Program::str() const {
  std::string text;
  if (ranks_per_actor() > 1)
    text = fmt::format("an actor is {} ranks, {}: each of them runs its actor's list\n", ranks_per_actor(), mesh.str());
  for (std::size_t a = 0; a < actors.size(); ++a) {
    text += fmt::format("actor {}: {} instructions\n", a, actors[a].code.size());
    for (const Instruction& i : actors[a].code) {
      text += "  " + str(i) + "\n";
    }
  }
  return text;
}

}  // namespace stretto
