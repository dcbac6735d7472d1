#include "stretto/program/memory/persistent.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "stretto/program/emit/buckets.h"
#include "stretto/program/frozen.h"

namespace stretto {
namespace {

class PersistentMemory {
 public:
  PersistentMemory(Program& p, ActorId actor) : p_(p), s_(*p.step), actor_(actor), a_(p.actors[actor]) {}

  void run() {
    find_used();
    a_.accumulator_at = {}, a_.bucket_at = {}, a_.input_at = {}, a_.output_at = {}, a_.scalar_at = {}, a_.state_at = {};
    const u64 microbatches = p_.pipe_of.size();
    if (a_.param_at.empty() && a_.frozen_at.empty()) params();
    buckets();
    give(used_.accumulators, a_.accumulator_at, Arena::gradients,
         [&](AccumulatorId g) { return s_.bytes(s_.accumulators[g].type); });
    give(used_.inputs, a_.input_at, Arena::inputs, [&](InputId i) { return s_.bytes(s_.inputs[i]) * microbatches; });
    give(used_.scalars, a_.scalar_at, Arena::results, [&](ScalarId i) { return s_.bytes(s_.scalars[i]); });
    give(used_.outputs, a_.output_at, Arena::results, [&](OutputId i) { return s_.outputs[i].bytes * microbatches; });
    a_.squares_at = take(Arena::results, 8 * s_.squares);
    give(used_.states, a_.state_at, Arena::state, [&](StateId i) { return s_.state_bytes(i); });
  }

 private:
  u64 take(Arena arena, u64 bytes) {
    const u64 at = a_.bytes[arena];
    a_.bytes[arena] += aligned(bytes);
    return at;
  }
  // Gives an offset to each that has none yet, in the order of their ids.
  template <class I>
  void give(std::vector<I>& which, Offsets<I>& at, Arena arena, auto bytes) {
    std::sort(which.begin(), which.end());
    which.erase(std::unique(which.begin(), which.end()), which.end());
    for (I i : which)
      if (!at[i]) at.put(i, take(arena, bytes(i)));
  }

  // Only what this actor's tasks touch gets memory here, and parameters of its own that nobody reads: they can be asked
  // for and saved.
  void find_used() {
    IdVector<TaskId, std::vector<AccumulatorId>> seen(s_.tasks.size());  // which copies of accumulators each means
    std::vector<char> known(a_.code.kinds().size());
    const bool copies_differ = s_.levels > 0 || p_.schedule.actor_of.size() > 1;
    for (const Turn& t : a_.code.turns()) {
      if (std::exchange(known[t.code.value], 1) && !copies_differ) continue;
      for (const Instruction& i : a_.code.kind(t).instructions)
        if (const Run* r = task_of(i)) {
          Run here = *r;
          here.microbatch = a_.code.microbatch(t, r->microbatch);
          use(here, seen[r->task]);
        }
    }
    for (ParamId i : s_.params.ids())
      if (p_.owners[i] == actor_) used_.params.push_back(i);
  }
  void use(const Run& r, std::vector<AccumulatorId>& copies) {
    const AccumulatorId copy = p_.accumulator(AccumulatorId(0), r.microbatch);
    if (std::find(copies.begin(), copies.end(), copy) != copies.end()) return;
    copies.push_back(copy);
    for (const Binding& b : p_.task(r).inputs) use(bound(p_, r, b));
    for (const Binding& b : p_.task(r).outputs) use(bound(p_, r, b));
  }
  void use(const Binding& b) {
    match(
        b, [&](ParamId i) { used_.params.push_back(i); },
        [&](AccumulatorId i) {
          if (!visits(p_, actor_, i)) used_.accumulators.push_back(i);
        },
        [&](InputId i) { used_.inputs.push_back(i); }, [&](ScalarId i) { used_.scalars.push_back(i); },
        [&](OutputId i) { used_.outputs.push_back(i); }, [&](AllMicrobatches i) { used_.outputs.push_back(i.output); },
        [&](StateId i) { used_.states.push_back(i); },
        // These lie within those above, or among the activations.
        [](BucketId) {}, [](SquareId) {}, [](AllSquares) {}, [](ValueId) {});
  }

  void params() {
    const IdVector<ParamId, bool> frozen = frozen_params(s_);
    const auto of = [&](bool which) {
      std::vector<ParamId> some;
      std::ranges::copy_if(used_.params, std::back_inserter(some), [&](ParamId i) { return frozen[i] == which; });
      return some;
    };
    const auto bytes = [&](ParamId i) { return s_.bytes(s_.params[i]); };
    std::vector<ParamId> written = of(false), others = of(true);
    give(written, a_.param_at, Arena::params, bytes);
    give(others, a_.frozen_at, Arena::frozen, bytes);
  }

  // Comes first, so that what is summed together lies together. The gaps between accumulators stay zero.
  void buckets() {
    for (BucketId b : s_.buckets.ids()) {
      if (s_.buckets[b].actor != actor_) continue;
      a_.bucket_at.put(b, a_.bytes[Arena::gradients]);
      for (AccumulatorId g : s_.buckets[b].accumulators)
        a_.accumulator_at.put(g, take(Arena::gradients, s_.bytes(s_.accumulators[g].type)));
    }
  }

  Program& p_;
  const Step& s_;
  const ActorId actor_;
  ActorProgram& a_;
  struct {
    std::vector<ParamId> params;
    std::vector<AccumulatorId> accumulators;
    std::vector<InputId> inputs;
    std::vector<ScalarId> scalars;
    std::vector<OutputId> outputs;
    std::vector<StateId> states;
  } used_;
};

}  // namespace

void place_persistent(Program& p, ActorId actor) { PersistentMemory(p, actor).run(); }

Binding bound(const Program& p, const Run& r, const Binding& b) {
  const Part part = p.task(r).part;
  const AccumulatorId* g = as<AccumulatorId>(b);
  return g && (part == Part::W || part == Part::A) ? Binding(p.accumulator(*g, r.microbatch)) : b;
}

bool visits(const Program& p, ActorId actor, AccumulatorId g) {
  const Accumulator& a = p.step->accumulators[g];
  return p.actor_of(a.piece, a.pipe) != actor;
}
bool visits(const Program& p, ActorId actor, const Binding& b) {
  const AccumulatorId* g = as<AccumulatorId>(b);
  return g && visits(p, actor, *g);
}

Slot persistent_slot(const Program& p, const ActorProgram& a, const Binding& b, MicrobatchId m) {
  const Step& s = *p.step;
  const auto at = [](Arena arena, Offset offset, u64 more = 0) {
    STRETTO_ASSERT(offset.has_value(), "it has no memory on this actor");
    return Slot{.arena = arena, .offset = *offset + more};
  };
  return match(
      b,
      [&](ParamId i) {
        const std::optional<Slot> place = a.place_of(i);
        STRETTO_ASSERT(place.has_value(), "it has no memory on this actor");
        return *place;
      },
      [&](AccumulatorId i) { return at(Arena::gradients, a.accumulator_at[i]); },
      [&](BucketId i) { return at(Arena::gradients, a.bucket_at[i]); },
      [&](InputId i) { return at(Arena::inputs, a.input_at[i], s.bytes(s.inputs[i]) * m.value); },
      [&](ScalarId i) { return at(Arena::results, a.scalar_at[i]); },
      [&](OutputId i) { return at(Arena::results, a.output_at[i], s.outputs[i].bytes * m.value); },
      [&](AllMicrobatches i) { return at(Arena::results, a.output_at[i.output]); },
      [&](StateId i) { return at(Arena::state, a.state_at[i]); },
      [&](SquareId i) { return at(Arena::results, a.squares_at, 8 * i.value); },
      [&](AllSquares) { return at(Arena::results, a.squares_at); },
      [](ValueId) -> Slot { STRETTO_ASSERT(false, "values are placed by liveness"); });
}

}  // namespace stretto
