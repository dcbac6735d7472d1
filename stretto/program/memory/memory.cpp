#include "stretto/program/memory/memory.h"

#include <algorithm>
#include <map>
#include <set>

#include "stretto/base/pack.h"
#include "stretto/program/emit/buckets.h"
#include "stretto/program/emit/touches.h"
#include "stretto/program/memory/lifetimes.h"
#include "stretto/program/memory/persistent.h"

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
    IdVector<TurnCodeId, double> of_kinds;
    for (const TurnCode& kind : a_.code.kinds()) of_kinds.push_back(buffers_of(kind));
    for (const Turn& t : a_.code.turns()) buffers += of_kinds[t.code];
    many_ = too_many_to_pack(buffers, p_.actors.size());
    if (!sizes_)
      for (TurnCode& kind : a_.code.kinds()) number_slots(kind);
    lives_ = lifetimes(p, actor, many_ ? Temporaries::of_parts : Temporaries::all);
  }

  void run() {
    std::size_t scratch = 0;
    for (const TurnCode& kind : a_.code.kinds())
      for (const Instruction& i : kind.instructions)
        if (const Run* r = task_of(i)) {
          scratch = std::max(scratch, p_.calls[r->task]->scratch);
          if (in_block(*r)) block_bytes_ = std::max(block_bytes_, block_for(*p_.calls[r->task]).bytes);
        }
    a_.bytes[Arena::scratch] = aligned(scratch) * p_.threads;
    if (!sizes_) {
      give_slots();
      place_persistent_ends();
    }
    place_activations();
  }

  // Results in other actors' memory, which must have been planned.
  void point_elsewhere() {
    for (const auto& [at, t] : lives_.elsewhere) {
      Slot& slot = a_.slots[SlotId(a_.code.turns()[at.turn].slots.value + at.slot.value)];
      slot = p_.transfers[t].extents[0].to;
      slot.elsewhere = p_.routes[p_.transfers[t].route].target;
    }
  }

 private:
  double buffers_of(const TurnCode& kind) const {
    double all = 0;
    for (const Instruction& i : kind.instructions)
      if (const Run* r = task_of(i)) all += double(p_.calls[r->task]->buffers.size());
    return all;
  }

  // With many runs, temporaries lie in blocks. Not those of a run in parts: other runs come between its parts.
  bool in_block(const Run& r) const { return many_ && !r.calls; }

  const Block& block_for(const Calls& calls) {
    const auto [it, fresh] = blocks_.try_emplace(&calls);
    if (fresh) it->second = block_of(calls);
    return it->second;
  }

  // A turn's own: every run has its arguments one after the other. The parts of a run share them.
  void number_slots(TurnCode& kind) const {
    std::map<std::pair<TaskId, MicrobatchId>, SlotId> parts;
    kind.slots = 0;
    for (Instruction& i : kind.instructions) {
      Run* r = task_of(i);
      if (!r) continue;
      SlotId own(kind.slots);
      if (r->calls) own = parts.try_emplace({r->task, r->microbatch}, own).first->second;
      r->args = own;
      if (own == SlotId(kind.slots)) kind.slots += std::uint32_t(p_.calls[r->task]->buffers.size());
    }
  }

  // What is the same in all turns of a kind, and what lies elsewhere for every microbatch.
  struct SlotsOfKind {
    std::vector<Slot> slots;
    struct PerMicrobatch {
      SlotId slot;
      const Binding* what;
      Run run;
    };
    std::vector<PerMicrobatch> differ;
  };
  SlotsOfKind slots_of(const TurnCode& kind) {
    SlotsOfKind all{.slots = std::vector<Slot>(kind.slots)};
    SlotId next(0);
    for (const Instruction& i : kind.instructions) {
      const Run* r = task_of(i);
      if (!r || r->args != next) continue;
      const Calls& calls = *p_.calls[r->task];
      const Block* block = in_block(*r) ? &block_for(calls) : nullptr;
      for (BufferId b : calls.buffers.ids()) {
        const SlotId slot(r->args.value + b.value);
        const Binding* what = binding_of(p_, *r, b);
        if (!what && block) all.slots[slot.value].offset = block->offsets[b];
        if (what && !as<ValueId>(*what)) all.differ.push_back({slot, what, *r});
      }
      next = SlotId(next.value + calls.buffers.size());
    }
    return all;
  }
  // Of a run's argument that is no value.
  Slot slot_of(const Binding& b, Run r, const Turn& t) const {
    r.microbatch = a_.code.microbatch(t, r.microbatch);
    const Binding where = bound(p_, r, b);
    return visits(p_, actor_, where) ? Slot{} : persistent_slot(p_, a_, where, r.microbatch);
  }
  void give_slots() {
    IdVector<TurnCodeId, std::optional<SlotsOfKind>> kinds(a_.code.kinds().size());
    std::size_t count = 0;
    for (const Turn& t : a_.code.turns()) count += a_.code.kind(t).slots;
    std::vector<Slot> all;
    all.reserve(count);
    for (std::size_t k = 0; k < a_.code.turns().size(); ++k) {
      const Turn& t = a_.code.turns()[k];
      std::optional<SlotsOfKind>& kind = kinds[t.code];
      if (!kind) {
        kind = slots_of(a_.code.kind(t));
        std::erase_if(kind->differ, [&](const SlotsOfKind::PerMicrobatch& x) {
          if (as<InputId>(*x.what) || as<OutputId>(*x.what) || as<AccumulatorId>(*x.what)) return false;
          kind->slots[x.slot.value] = slot_of(*x.what, x.run, t);
          return true;
        });
      }
      const std::size_t first = all.size();
      a_.code.put_slots(k, SlotId(first));
      all.insert(all.end(), kind->slots.begin(), kind->slots.end());
      for (const auto& [slot, what, run] : kind->differ) all[first + slot.value] = slot_of(*what, run, t);
    }
    a_.slots = IdVector<SlotId, Slot>(std::move(all));
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
    for (const Turn& t : a_.code.turns())
      for (const Instruction& i : a_.code.kind(t).instructions) {
        const auto transfer = [&](TransferId number) -> Transfer& { return p_.transfers[a_.code.transfer(t, number)]; };
        match(
            i, [&](const Send& s) { place(transfer(s.transfer), [](Extent& e) -> Slot& { return e.from; }); },
            [&](const Receive& r) { place(transfer(r.transfer), [](Extent& e) -> Slot& { return e.to; }); },
            [](const OneOf<Run, Start, Await> auto&) {});
      }
  }

  void place_activations() {
    std::vector<Lifetime> lives;
    lives.reserve(lives_.buffers.size());
    for (const LiveBuffer& b : lives_.buffers) lives.push_back({b.bytes, b.first, b.last});
    const Packing packing = many_ ? pack_quickly(lives) : pack(lives);
    a_.bytes[Arena::activations] = aligned(block_bytes_) + packing.bytes;
    a_.activation_bound = block_bytes_ + live_bound(lives);
    if (sizes_) return;
    STRETTO_ASSERT(disjoint(lives, packing), "buffers overlap while both are alive");
    const auto at = [&](LiveId id) {
      return Slot{.arena = Arena::activations, .offset = aligned(block_bytes_) + packing.offsets[id.value]};
    };
    for (std::size_t k = 0; k < a_.code.turns().size(); ++k) {
      const Turn& t = a_.code.turns()[k];
      const auto& slots = lives_.slots[t.code];
      for (std::size_t x = 0; x < slots.size(); ++x)
        for (SlotId s : slots[x])
          a_.slots[SlotId(t.slots.value + s.value)] = at(lives_.touched[lives_.first_touched[k] + x]);
    }
    for (const auto& [id, end] : lives_.ends) {
      Extent& extent = p_.transfers[end.transfer].extents[0];
      (end.sending ? extent.from : extent.to) = at(id);
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
      ActorProgram& own = p.actors[a];
      const ActorProgram& theirs = o.params_of->actors[a];
      own.param_at = theirs.param_at, own.frozen_at = theirs.frozen_at;
      for (const Arena k : {Arena::params, Arena::frozen}) own.bytes[k] = theirs.bytes[k];
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
