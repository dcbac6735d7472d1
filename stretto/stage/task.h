// Tasks: what one phase of one piece computes, as a graph of its own. A stage is a run of pieces; a schedule's action
// on a stage runs the tasks of its pieces in order. Because tasks are made per piece, before any cut is chosen, no
// choice of cuts or schedule can change what is computed.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stretto/ir/graph.h"

namespace stretto {

// In the order of a step: counts and loss scales; forward, what is made again of it, gradients of inputs and of weights
// per microbatch, gradients of neighbouring microbatches added (exact training only); then sums of gradients over
// pieces and ranks, norms, clipping, update. `total` adds an output up over ranks: a count before the scales are made
// of it, others behind the schedule's last action. With storage that is cut over ranks (storage.h) U gathers a piece's
// parameters, S reduces and scatters its gradients, A adds them up.
enum class Part : std::uint8_t { count, scale, U, F, R, I, W, S, A, carry, combine, norm, clip, update, total };
inline bool adds_to_gradients(Part p) { return p == Part::W || p == Part::A || p == Part::carry; }
std::string_view name_of(Part);

// Where a task's argument comes from or its result goes to; `index` is into the list of that kind in Step.
enum class Place : std::uint8_t {
  param,     // parameters
  input,     // rows of the batch, one slice per microbatch
  scalar,    // per-step numbers: learning rate, loss scales, norm, clip factor
  value,     // made by one task and used by another, one instance per microbatch
  gradient,  // accumulators; results are added to them
  output,    // per-microbatch results: loss sums, counts, metrics
  outputs,   // all microbatches of one output, seen by per-step tasks as {microbatch, ...}
  state,     // optimizer state
  square,    // squared norms, one f64 per parameter
  squares,   // all of them, seen by the clip task as {parameter}
};
struct Binding {
  Place place = Place::value;
  std::uint32_t index = 0;
  auto operator<=>(const Binding&) const = default;
};

struct Task {
  Part part = Part::F;
  std::uint16_t piece = 0;
  std::uint32_t subject = 0;          // per-parameter tasks: which one; total: which output
  std::shared_ptr<const Graph> body;  // its `input` nodes, in order, are the arguments; equal bodies share the pointer
  std::vector<Binding> inputs, outputs;
  std::vector<u64> keys;  // of the random nodes in the body, in order
};

struct CrossValue {  // made by one task, used by others
  Type type;
  std::size_t bytes = 0;
  std::uint32_t producer = 0;            // task
  std::vector<std::uint32_t> consumers;  // tasks
  std::string name;
};
struct Accumulator {
  std::uint32_t param = 0;
  std::uint16_t piece = 0;
  std::uint8_t pipe = 0, level = 0;
  Type type;                             // the parameter's, or a part of it, flat
  std::vector<std::string> summed = {};  // axes over which it is added up in place, behind its last microbatch
};
struct StepOutput {
  std::string name;
  Type type;
  std::size_t bytes = 0;
  bool count = false;  // made in the prologue
};

// Everything split() derives from the step's graph. `dims` is shared by all bodies.
struct Step {
  std::vector<Dim> dims;
  std::vector<Type> params, inputs, scalars;
  std::vector<Type> updated;  // per parameter: what norm, update and state see of it; empty: all, as the parameter is
  std::vector<CrossValue> values;
  // A parameter's first one is its own; later ones are added to it in `combine`. Tasks name those of pipe 0 and level
  // 0; those of a second pipe, or of the levels of a tree, stand behind them in the same order.
  std::vector<Accumulator> accumulators;
  // Exact training: how many levels there are beside the first. The gradient of microbatch m is written to the level
  // that has as many numbers below it as m has bits; `carry` adds a level (its subject) to the one below.
  int levels = 0;
  std::uint32_t squares = 0;  // squared norms: one per parameter, and zeros that tell whether the loss is finite
  std::vector<StepOutput> outputs;
  std::vector<Task> tasks;  // count, then F, R, I, W per piece ascending; per-step tasks are appended by compile/
  int pieces = 1;

  std::size_t bytes(const Type&) const;
  std::size_t state_bytes(std::uint32_t param) const { return bytes(updated.empty() ? params[param] : updated[param]); }
  const Task* find(Part, int piece) const;
};

std::vector<Fault> verify(const Step&);

}  // namespace stretto
