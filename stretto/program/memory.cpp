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
      : p_(p), s_(*p.step), actor_(actor), a_(p.actors[std::size_t(actor)]), blocks_(blocks), instances_(s_) {}

  void run() {
    measure();
    persistent();
    std::size_t scratch = 0;
    for (std::size_t k = 0; k < a_.code.size(); ++k) {
      if (Run* r = std::get_if<Run>(&a_.code[k])) {
        task(*r, clock_[k]);
        scratch = std::max(scratch, p_.calls[r->task]->scratch);
      } else if (Start* s = std::get_if<Start>(&a_.code[k])) {
        starting_ = s->number;
        task(s->run, clock_[k]);
        starting_ = none;
      } else if (const Await* w = std::get_if<Await>(&a_.code[k])) {
        instances_.awaited(*w);
        for (std::size_t live : started_[w->number]) lives_[live].last = std::max(lives_[live].last, clock_[k]);
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
  static constexpr std::uint32_t none = ~0u;
  static u64 key_of(std::uint32_t value, std::uint32_t microbatch) { return (u64(value) << 32) | microbatch; }

  // What is written straight to others; whether there is so much that packing everything at once would take too long.
  void measure() {
    clock_ = instruction_clock(p_, a_);
    u64 buffers = 0;
    for (const Instruction& i : a_.code) {
      if (const Run* r = task_of(i)) {
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
        if (b.temporary())
          own.push_back(b.touched ? Lifetime{b.bytes, b.touched->first.value, b.touched->last.value} : Lifetime{});
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
      const Run* r = task_of(i);
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
    for (std::uint32_t i = 0; i < s_.params.size(); ++i)  // also what nobody reads: it can be asked for and saved
      if (p_.owner_of(i) == actor_) used.insert({Place::param, i});
    if (a_.param_at.empty())
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
    if (b.place == Place::gradient && (s_.tasks[r.task].part == Part::W || s_.tasks[r.task].part == Part::A))
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

  void task(Run& r, i64 clock) {
    const Calls& calls = *p_.calls[r.task];
    r.args = std::uint32_t(a_.slots.size());
    if (many_) block(calls);
    for (const BodyBuffer& b : calls.buffers) bind(r, b, clock);
  }
  void bind(const Run& r, const BodyBuffer& b, i64 clock) {
    const Task& t = s_.tasks[r.task];
    const std::uint32_t slot = std::uint32_t(a_.slots.size());
    a_.slots.push_back({});
    const auto life = [&] { return Lifetime{b.bytes, clock + b.touched->first.value, clock + b.touched->last.value}; };
    if (b.temporary()) {
      if (many_) a_.slots[slot].offset = block_->offsets[in_block_++];
      if (!b.touched || many_) return;
      lives_.push_back(life());
      owners_.push_back({slot});
      return;
    }
    const Binding binding = in_pipe(r, b.argument() ? t.inputs[b.argument()->value] : t.outputs[b.result()->value]);
    if (binding.place != Place::value) {
      a_.slots[slot] = persistent_slot(binding, r.microbatch);
      return;
    }
    if (!b.touched) return;
    const bool made = b.result() != nullptr;
    const u64 key =
        key_of(binding.index, made ? instances_.made(r, starting_, binding.index) : instances_.read(r, binding.index));
    if (made)
      if (const auto it = direct_.find(key); it != direct_.end()) {
        elsewhere_.push_back({slot, it->second});
        return;
      }
    const auto [it, fresh] = live_.try_emplace(key, lives_.size());
    if (fresh) {
      lives_.push_back(life());
      owners_.push_back({slot});
    } else {
      lives_[it->second].last = std::max(lives_[it->second].last, life().last);
      owners_[it->second].push_back(slot);
    }
    if (starting_ != none) started_[starting_].push_back(it->second);
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
  Instances instances_;
  std::uint32_t starting_ = none;                                        // the number of what is being started
  std::unordered_map<std::uint32_t, std::vector<std::size_t>> started_;  // what it owns, in lives_
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
    const Run* r = task_of(i);
    clock.push_back(clock.back() + (r ? std::max<i64>(1, i64(p.calls[r->task]->calls.size())) : 1));
  }
  return clock;
}

void plan_memory(Program& p, const Program* params_of) {
  Blocks blocks;
  std::vector<Planner> planners;
  if (params_of)
    for (std::size_t a = 0; a < p.actors.size(); ++a) {
      p.actors[a].param_at = params_of->actors[a].param_at;
      p.actors[a].bytes[std::size_t(Arena::params)] = params_of->actors[a].bytes[std::size_t(Arena::params)];
    }
  for (int a = 0; a < int(p.actors.size()); ++a) planners.emplace_back(p, a, blocks);
  for (Planner& planner : planners) planner.run();
  for (Planner& planner : planners) planner.point_elsewhere();
}

}  // namespace stretto
