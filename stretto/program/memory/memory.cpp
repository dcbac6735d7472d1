#include "stretto/program/memory/memory.h"

#include <algorithm>
#include <map>
#include <set>

#include "stretto/base/pack.h"
#include "stretto/program/emit/buckets.h"
#include "stretto/program/memory/lifetimes.h"
#include "stretto/program/memory/persistent.h"
#include "stretto/program/emit/touches.h"

namespace stretto {
namespace {

// Where the temporaries of a body lie in a block that every run of it uses.
struct Block {
  IdVector<BufferId, u64> offsets;  // of temporaries
  u64 bytes = 0;
};
using Blocks = std::map<const Calls*, Block>;

Block block_of(const Calls& calls) {
  std::vector<Lifetime> lives;
  std::vector<BufferId> which;
  for (BufferId b : calls.buffers.ids())
    if (const BodyBuffer& x = calls.buffers[b]; x.temporary() && x.touched) {
      lives.push_back({x.bytes, x.touched->first.value, x.touched->last.value});
      which.push_back(b);
    }
  const Packing packing = pack(lives);
  Block block{.offsets = IdVector<BufferId, u64>(calls.buffers.size(), 0), .bytes = packing.bytes};
  for (std::size_t i = 0; i < which.size(); ++i) block.offsets[which[i]] = packing.offsets[i];
  return block;
}

// One actor's activations.
class Planner {
 public:
  Planner(Program& p, ActorId actor, Blocks& blocks, bool sizes)
      : p_(p), actor_(actor), a_(p.actors[actor]), blocks_(blocks), sizes_(sizes) {
    double buffers = 0;
    for (const Instruction& i : a_.code)
      if (const Run* r = task_of(i)) buffers += p_.calls[r->task]->buffers.size();
    many_ = too_many_to_pack(buffers, p_.actors.size());
    if (!sizes_ || !many_) lives_ = lifetimes(p, actor);
  }

  void run() {
    std::size_t scratch = 0;
    for (InstructionId i : a_.code.ids())
      if (Run* r = task_of(a_.code[i])) {
        scratch = std::max(scratch, p_.calls[r->task]->scratch);
        const Block* block = in_block(*r) ? &block_for(*p_.calls[r->task]) : nullptr;
        if (block) block_bytes_ = std::max(block_bytes_, block->bytes);
        if (!sizes_) give_slots(*r, i, block);
      }
    a_.bytes[Arena::scratch] = aligned(scratch);
    if (!sizes_) place_persistent_ends();
    if (sizes_ && many_)
      packed(lives_of_values(p_, actor_).list());
    else
      place_activations();
  }

  // Results in other actors' memory, which must have been planned.
  void point_elsewhere() {
    for (const auto& [use, t] : lives_.elsewhere) {
      Slot& slot = slot_of(use);
      slot = p_.transfers[t].extents[0].to;
      slot.elsewhere = p_.routes[p_.transfers[t].route].target;
    }
  }

 private:
  Slot& slot_of(const BufferUse& u) {
    return a_.slots[SlotId(task_of(a_.code[u.instruction])->args.value + u.buffer.value)];
  }

  // With many runs, temporaries lie in blocks. Not those of a run in parts: other runs come between its parts.
  bool in_block(const Run& r) const { return many_ && !r.calls; }

  const Block& block_for(const Calls& calls) {
    const auto [it, fresh] = blocks_.try_emplace(&calls);
    if (fresh) it->second = block_of(calls);
    return it->second;
  }

  void give_slots(Run& r, InstructionId i, const Block* block) {
    if (const InstructionId home = lives_.home[i]; home != i) {
      r.args = task_of(a_.code[home])->args;
      return;
    }
    r.args = a_.slots.next_id();
    const Calls& calls = *p_.calls[r.task];
    for (BufferId b : calls.buffers.ids()) {
      const BodyBuffer& buffer = calls.buffers[b];
      Slot slot;
      if (buffer.temporary()) {
        if (block) slot.offset = block->offsets[b];
      } else {
        const Binding where = bound(p_, r, *binding_of(p_, r, b));
        if (!as<ValueId>(where) && !visits(p_, actor_, where)) slot = persistent_slot(p_, a_, where, r.microbatch);
      }
      a_.slots.push_back(slot);
    }
  }

  // Ends of messages that lie in something persistent.
  void place_persistent_ends() {
    const auto place = [&](Transfer& t, auto end) {
      match(
          t.what, [](const SentValue&) {}, [&](ParamId x) { end(t.extents[0]) = persistent_slot(p_, a_, x); },
          [&](AccumulatorId x) {
            if (!visits(p_, actor_, x)) end(t.extents[0]) = persistent_slot(p_, a_, x);
          },
          [&](const SentSquares& s) {
            for (std::size_t k = 0; k < s.ranges.size(); ++k)
              end(t.extents[k]) = persistent_slot(p_, a_, s.ranges[k].first);
          },
          [](SentWord) {});
    };
    for (const Instruction& i : a_.code)
      match(
          i, [&](const Send& s) { place(p_.transfers[s.transfer], [](Extent& e) -> Slot& { return e.from; }); },
          [&](const Receive& r) { place(p_.transfers[r.transfer], [](Extent& e) -> Slot& { return e.to; }); },
          [](const Run&) {}, [](const Start&) {}, [](const Await&) {});
  }

  Packing packed(std::span<const Lifetime> lives) {
    Packing packing = many_ ? pack_quickly(lives) : pack(lives);
    a_.bytes[Arena::activations] = aligned(block_bytes_) + packing.bytes;
    a_.activation_bound = block_bytes_ + live_bound(lives);
    return packing;
  }
  void place_activations() {
    std::vector<LiveId> placed;
    std::vector<Lifetime> lives;
    for (LiveId id : lives_.buffers.ids()) {
      const LiveBuffer& b = lives_.buffers[id];
      const Run* maker = task_of(a_.code[b.made]);  // none: it is received
      if (!b.value && maker && in_block(*maker)) continue;
      placed.push_back(id);
      lives.push_back({b.bytes, b.first, b.last});
    }
    const Packing packing = packed(lives);
    if (sizes_) return;
    STRETTO_ASSERT(disjoint(lives, packing), "buffers overlap while both are alive");
    IdVector<LiveId, Offset> at(lives_.buffers.size());
    for (std::size_t i = 0; i < placed.size(); ++i) at[placed[i]] = aligned(block_bytes_) + packing.offsets[i];
    for (const auto& [id, use] : lives_.uses)
      if (at[id]) slot_of(use) = {.arena = Arena::activations, .offset = *at[id]};
    for (const auto& [id, end] : lives_.ends) {
      Extent& extent = p_.transfers[end.transfer].extents[0];
      (end.sending ? extent.from : extent.to) = {.arena = Arena::activations, .offset = at[id].value()};
    }
  }

  Program& p_;
  const ActorId actor_;
  ActorProgram& a_;
  Blocks& blocks_;
  const bool sizes_;
  Lifetimes lives_;
  bool many_ = false;  // buffers: too_many_to_pack
  u64 block_bytes_ = 0;
};

}  // namespace

bool too_many_to_pack(double buffers, std::size_t actors) { return buffers * buffers * double(actors) > 1e8; }

u64 bytes_of_temporaries(const Calls& calls) { return block_of(calls).bytes; }

void plan_memory(Program& p, const MemoryOptions& o) {
  Blocks blocks;
  std::vector<Planner> planners;
  for (ActorId a : p.actors.ids()) {
    if (o.params_of) {
      p.actors[a].param_at = o.params_of->actors[a].param_at;
      p.actors[a].bytes[Arena::params] = o.params_of->actors[a].bytes[Arena::params];
    }
    place_persistent(p, a);
    if (o.sizes)
      Planner(p, a, blocks, true).run();
    else
      planners.emplace_back(p, a, blocks, false).run();
  }
  for (Planner& planner : planners) planner.point_elsewhere();
  if (o.undo)
    for (ActorProgram& a : p.actors) a.bytes[Arena::kept] = 2 * (a.bytes[Arena::params] + a.bytes[Arena::state]);
}

}  // namespace stretto
