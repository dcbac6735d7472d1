// A step as tasks: what one phase of one piece computes, as a graph of its own. A stage is a run of pieces; a
// schedule's action on a stage runs the tasks of its pieces in order. Because tasks are made per piece, before any cut
// is chosen, no choice of cuts or schedule can change what is computed.
//
//   for (const Task& t : step.tasks) fmt::print("{}\n", str(t));             // "F3", "update of parameter 7"
//   if (const ValueId* v = as<ValueId>(t.inputs[ArgumentId(0)])) fmt::print("{}\n", step.values[*v].name);
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "stretto/base/id.h"
#include "stretto/ir/ids.h"
#include "stretto/step/recompute.h"

namespace stretto {

using TaskId = Id<struct TaskTag>;
using ValueId = Id<struct StepValueTag>;
using BucketId = Id<struct BucketTag>;
using SquareId = Id<struct SquareTag>;
using TermId = Id<struct TermTag>;

// In the order of a step. First counts and loss scales. Then, per microbatch: forward, what of it is recomputed, the
// gradients of inputs and of weights, and, in exact training, sums of the gradients of neighbouring microbatches. Last:
// sums of gradients over ranks and pieces, norms, clipping, update. `total` adds up an output over ranks: a count
// before the loss scales are made from it, others after the schedule's last action. `finite` says whether a loss term
// is finite. Where storage is cut over ranks (storage.h), U gathers a piece's parameters, S reduces and scatters its
// gradients, and A adds them up.
enum class Part : std::uint8_t {
  count,
  scale,
  U,
  F,
  R,
  I,
  W,
  S,
  A,
  carry,
  sum,
  combine,
  norm,
  finite,
  clip,
  update,
  total
};
std::string_view name_of(Part);
// Tasks of a piece, which run where its stage is.
inline bool of_a_piece(Part p) { return p >= Part::U && p <= Part::carry; }
// The phases that a schedule's actions are made of.
inline bool of_an_action(Part p) { return p >= Part::F && p <= Part::W; }
inline bool adds_to_gradients(Part p) { return p == Part::W || p == Part::A || p == Part::carry; }

// What a U gathers: all that the piece's phases read, or, where that is less, what backward reads.
enum class Gathered : std::uint8_t { whole, backward };
// A level of the tree in which exact training adds gradients up; 0 has the sums of single microbatches.
using Level = Id<struct LevelTag, std::uint8_t>;
struct LossOfPipe {
  TermId term;
  PipeId pipe;
  auto operator<=>(const LossOfPipe&) const = default;
};
// What a task is about, beside its piece: one type per part.
//   scale TermId · total OutputId · U Gathered · carry Level (it is added to the one below) · sum BucketId
//   combine, norm, update, and an S outside of the loop ParamId · finite LossOfPipe · others nothing
using About = std::variant<std::monostate, ParamId, OutputId, TermId, LossOfPipe, Gathered, Level, BucketId>;

// Where a task's argument comes from or its result goes to.
struct AllMicrobatches {  // of one output, seen by per-step tasks as {microbatch, ...}
  OutputId output;
  auto operator<=>(const AllMicrobatches&) const = default;
};
struct StateId {  // of the optimizer
  ParamId param;
  std::uint8_t which = 0;
  auto operator<=>(const StateId&) const = default;
};
struct AllSquares {  // seen by the clip task as {parameter}
  auto operator<=>(const AllSquares&) const = default;
};
using Binding = std::variant<ValueId,          // made by one task and used by another, one instance per microbatch
                             ParamId,          //
                             InputId,          // rows of the batch, one slice per microbatch
                             ScalarId,         // per-step numbers: learning rate, loss scales, norm, clip factor
                             AccumulatorId,    // results are added to them
                             BucketId,         // accumulators side by side, as one row of numbers
                             OutputId,         // per-microbatch results: loss sums, counts, metrics
                             AllMicrobatches,  //
                             StateId,          //
                             SquareId,         // squared norms, one f64 each
                             AllSquares>;
template <class T>
const T* as(const Binding& b) {
  return std::get_if<T>(&b);
}

struct Task {
  Part part = Part::F;
  std::optional<PieceId> piece = {};  // of tasks that run where a stage is: those of a piece, total, finite
  About about = {};
  std::shared_ptr<const Graph> body = {};  // its `input` nodes, in order, are the arguments; equal bodies share it
  IdVector<ArgumentId, Binding> inputs = {};
  IdVector<ResultId, Binding> outputs = {};
  IdVector<KeyId, u64> keys = {};  // of the random nodes in the body

  ParamId param() const { return std::get<ParamId>(about); }
};
std::string str(const Task&);

struct CrossValue {  // made by one task, used by others
  Type type;
  std::size_t bytes = 0;
  TaskId producer;
  std::vector<TaskId> consumers = {};
  std::string name;
};
struct Accumulator {
  ParamId param;
  PieceId piece;
  PipeId pipe = PipeId(0);
  Level level = Level(0);
  Type type;                             // the parameter's, or a part of it, flat
  std::vector<std::string> summed = {};  // axes over which it is added up in place, after its last microbatch
};
// Accumulators of one stage that are added up over the same ranks lie side by side in memory. One `sum` task adds all
// of them up while the actor works on others.
struct GradientBucket {
  ActorId actor;
  StageId stage;
  std::vector<std::string> axes;
  DType dtype = f32;
  std::vector<AccumulatorId> accumulators = {};
  u64 bytes = 0;  // with the gaps between them, which stay zero
};
struct StepOutput {
  std::string name;
  Type type;
  std::size_t bytes = 0;
  bool count = false;  // made in the prologue
};

// Everything split() derives from the step's graph. `dims` is shared by all bodies.
struct Step {
  std::vector<Dim> dims = {};
  IdVector<ParamId, Type> params = {};
  IdVector<InputId, Type> inputs = {};
  IdVector<ScalarId, Type> scalars = {};
  IdVector<ParamId, Type> updated = {};  // what norm, update and state see of a parameter; empty: all, as it is
  int bf16_states = 0;                   // how many of a parameter's states, from the first on, are in bf16
  IdVector<ValueId, CrossValue> values = {};
  // A parameter's first one is its own; later ones are added to it in `combine`. Tasks name those of pipe 0 and level
  // 0; those of a second pipe, or of the levels of a tree, are copies that stand after them in the same order.
  IdVector<AccumulatorId, Accumulator> accumulators = {};
  // Exact training: how many levels there are beside level 0. The gradient of microbatch m is written to level k if k
  // bits of m are set; `carry` adds a level to the one below it.
  int levels = 0;
  IdVector<BucketId, GradientBucket> buckets = {};
  std::size_t squares = 0;  // squared norms: one per parameter, and zeros that are not finite when the loss is not
  IdVector<OutputId, StepOutput> outputs = {};
  IdVector<TaskId, Task> tasks = {};  // count, then F, R, I, W per piece ascending; per-step tasks are appended
  int pieces = 1;
  // Of sequences that are cut. As many pieces, one after the other, lie between the same boundaries: they have the same
  // parameters, and add to the same accumulators.
  int segments = 1;
  IdVector<PieceId, Recompute> recompute = {};  // empty: none

  auto piece_ids() const { return ids_until<PieceId>(pieces); }
  int segment_of(PieceId p) const { return p.value % segments; }
  PieceId first_segment(PieceId p) const { return PieceId(p.value - segment_of(p)); }  // between the same boundaries
  std::size_t bytes(const Type&) const;
  i64 elements(const Type&) const;
  std::size_t state_bytes(StateId s) const {  // those of a bf16 parameter are f32 if not bf16
    const Type& t = updated.empty() ? params[s.param] : updated[s.param];
    return bytes({s.which < bf16_states ? bf16 : wide(t.dtype), t.dims});
  }
  const Task* find(Part, PieceId) const;
  SquareId square_of(ParamId p) const { return SquareId(p.value); }
};

std::vector<Fault> verify(const Step&);

}  // namespace stretto
