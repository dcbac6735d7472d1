#include "stretto/program/persistent.h"

#include <set>

#include "stretto/program/buckets.h"

namespace stretto {
namespace {

class Placement {
 public:
  Placement(Program& p, ActorId actor) : p_(p), s_(*p.step), actor_(actor), a_(p.actors[actor]) {}

  void run() {
    find_used();
    if (a_.param_at.empty())
      a_.param_at = give<ParamId>(s_.params.size(), Arena::params, [&](ParamId i) { return s_.bytes(s_.params[i]); });
    buckets();
    for (AccumulatorId g : s_.accumulators.ids())
      if (used_.contains(g) && !a_.accumulator_at[g])
        a_.accumulator_at[g] = take(Arena::gradients, s_.bytes(s_.accumulators[g].type));
    const u64 microbatches = p_.pipe_of.size();
    a_.input_at = give<InputId>(s_.inputs.size(), Arena::inputs,
                                [&](InputId i) { return s_.bytes(s_.inputs[i]) * microbatches; });
    a_.scalar_at =
        give<ScalarId>(s_.scalars.size(), Arena::results, [&](ScalarId i) { return s_.bytes(s_.scalars[i]); });
    a_.output_at.assign(s_.outputs.size(), std::nullopt);
    for (OutputId i : s_.outputs.ids())
      if (used_.contains(i) || used_.contains(AllMicrobatches{i}))
        a_.output_at[i] = take(Arena::results, s_.outputs[i].bytes * microbatches);
    a_.squares_at = take(Arena::results, 8 * s_.squares);
    a_.state_at.assign(s_.params.size(), std::vector<Offset>(p_.states));
    for (ParamId i : s_.params.ids())
      for (std::uint8_t k = 0; k < p_.states; ++k)
        if (used_.contains(StateId{i, k})) a_.state_at[i][k] = take(Arena::state, s_.state_bytes(i));
  }

 private:
  u64 take(Arena arena, u64 bytes) {
    const u64 at = a_.bytes[arena];
    a_.bytes[arena] += aligned(bytes);
    return at;
  }
  template <class I>
  IdVector<I, Offset> give(std::size_t n, Arena arena, auto bytes) {
    IdVector<I, Offset> at(n);
    for (I i : at.ids())
      if (used_.contains(i)) at[i] = take(arena, bytes(i));
    return at;
  }

  // Only what this actor's tasks touch gets memory here; and its own parameters that nobody reads, which can be asked
  // for and saved.
  void find_used() {
    std::set<std::pair<TaskId, AccumulatorId>> seen;  // task, and which copy of accumulators it means
    for (const Instruction& i : a_.code) {
      const Run* r = task_of(i);
      if (!r || !seen.insert({r->task, p_.accumulator(AccumulatorId(0), r->microbatch)}).second) continue;
      for (const Binding& b : p_.task(*r).inputs) used_.insert(bound(p_, *r, b));
      for (const Binding& b : p_.task(*r).outputs) used_.insert(bound(p_, *r, b));
    }
    for (ParamId i : s_.params.ids())
      if (p_.owners[i] == actor_) used_.insert(i);
  }

  // First: what is summed together lies together. The gaps between accumulators stay zero.
  void buckets() {
    a_.bucket_at.assign(s_.buckets.size(), std::nullopt);
    a_.accumulator_at.assign(s_.accumulators.size(), std::nullopt);
    for (BucketId b : s_.buckets.ids()) {
      if (s_.buckets[b].actor != actor_) continue;
      a_.bucket_at[b] = a_.bytes[Arena::gradients];
      for (AccumulatorId g : s_.buckets[b].accumulators)
        a_.accumulator_at[g] = take(Arena::gradients, s_.bytes(s_.accumulators[g].type));
    }
  }

  Program& p_;
  const Step& s_;
  const ActorId actor_;
  ActorProgram& a_;
  std::set<Binding> used_;
};

}  // namespace

void place_persistent(Program& p, ActorId actor) { Placement(p, actor).run(); }

Binding bound(const Program& p, const Run& r, const Binding& b) {
  const Part part = p.task(r).part;
  const AccumulatorId* g = as<AccumulatorId>(b);
  return g && (part == Part::W || part == Part::A) ? Binding(p.accumulator(*g, r.microbatch)) : b;
}

Slot persistent_slot(const Program& p, const ActorProgram& a, const Binding& b, MicrobatchId m) {
  const Step& s = *p.step;
  const auto at = [](Arena arena, Offset offset, u64 more = 0) {
    STRETTO_ASSERT(offset.has_value(), "it has no memory on this actor");
    return Slot{.arena = arena, .offset = *offset + more};
  };
  return match(
      b, [&](ParamId i) { return at(Arena::params, a.param_at[i]); },
      [&](AccumulatorId i) { return at(Arena::gradients, a.accumulator_at[i]); },
      [&](BucketId i) { return at(Arena::gradients, a.bucket_at[i]); },
      [&](InputId i) { return at(Arena::inputs, a.input_at[i], s.bytes(s.inputs[i]) * m.value); },
      [&](ScalarId i) { return at(Arena::results, a.scalar_at[i]); },
      [&](OutputId i) { return at(Arena::results, a.output_at[i], s.outputs[i].bytes * m.value); },
      [&](AllMicrobatches i) { return at(Arena::results, a.output_at[i.output]); },
      [&](StateId i) { return at(Arena::state, a.state_at[i.param][i.which]); },
      [&](SquareId i) { return at(Arena::results, a.squares_at, 8 * i.value); },
      [&](AllSquares) { return at(Arena::results, a.squares_at); },
      [](ValueId) -> Slot { STRETTO_ASSERT(false, "values are placed by liveness"); });
}

}  // namespace stretto
