// What the runtime executes: per actor, the ordered list of instructions, and where every buffer lies.
//
//   Program p = lower(step, schedule, stage_of, {.states = 2});
//   for (const Instruction& i : p.actors[ActorId(0)].code) fmt::print("{}\n", p.str(i));
//
// Memory is planned ahead: nothing is allocated after step 0 starts. An address is an arena and an offset; every actor
// has one arena of each kind.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stretto/fuse/calls.h"
#include "stretto/ir/layout.h"
#include "stretto/program/code.h"
#include "stretto/schedule/schedule.h"
#include "stretto/step/step.h"

namespace stretto {

enum class Arena : std::uint8_t {
  params,       // that tasks write
  frozen,       // parameters that nobody writes: ranks of a machine share them (frozen.h)
  gradients,    // accumulators
  state,        // of the optimizer
  inputs,       // the step's batch, all microbatches
  results,      // outputs of all microbatches, per-step scalars, squared norms
  activations,  // values between tasks and temporaries, at planned offsets
  scratch,      // kernels' workspace
  kept,         // parameters and state as they were before each of the last two steps, where those may be put back
};
constexpr std::size_t arena_count = 9;
std::string_view name_of(Arena);

template <class T>
struct PerArena : std::array<T, arena_count> {
  T& operator[](Arena a) { return this->data()[static_cast<std::size_t>(a)]; }
  const T& operator[](Arena a) const { return this->data()[static_cast<std::size_t>(a)]; }
};

struct Slot {
  Arena arena = Arena::activations;
  // Whose arena, when it is not the actor's own: a value that only one other actor reads is written straight into that
  // actor's memory.
  std::optional<ActorId> elsewhere = {};
  u64 offset = 0;
};

// Messages between actors. A route carries the same things again and again, first in first out: one value to one actor,
// or a step's gradients, squared norms or new parameters. The receiver's memory is planned to be free by the time the
// message can be sent at the earliest (order.h), so sending never waits: it copies the message there, or merely
// announces what the sender's kernels have written there themselves.
struct Extent {
  Slot from, to;  // on the sender and on the receiver
  u64 bytes = 0;
};
struct SentValue {  // one instance of a value
  ValueId value;
  MicrobatchId microbatch;
};
struct SquareRange {  // squared norms side by side
  SquareId first;
  std::uint32_t count = 0;
};
struct SentSquares {
  std::vector<SquareRange> ranges;
};
struct SentWord {};  // has no bytes: says that the sender has come so far
using Sent =
    std::variant<SentValue, ParamId, AccumulatorId, SentSquares, SentWord>;  // a whole parameter or accumulator
struct Transfer {
  RouteId route;
  Sent what;
  std::vector<Extent> extents;
  bool direct = false;      // made in the receiver's memory: nothing is copied
  InstructionId posted{0};  // the receiver has done all before this one when the message is written
  // Programs for several processes: until this instruction the sender leaves the message's memory as it is. A transport
  // that reads it later than at the send waits here at the latest; the receiver is ready by then, so the wait ends.
  std::optional<InstructionId> released = {};

  const SentValue* value() const { return std::get_if<SentValue>(&what); }
};
struct Route {
  ActorId source, target;
  u64 bytes = 0;
  std::string name;
};

// How long parameters that are cut over ranks stay gathered.
enum class Reshard : std::uint8_t {
  microbatch,  // while a piece works on one microbatch, or on several without another piece between them
  step,        // from the first use in a step to the last
};
std::string_view name_of(Reshard);

// How the ranks along some axes share the rows of a batch: every microbatch is cut among them, or, for exact training,
// the whole batch is, so that a rank's rows of all microbatches are neighbours.
struct SharedRows {
  std::vector<std::string> axes = {};
  bool neighbours = false;
  int parts(const Mesh&) const;  // neighbours: how many ranks have a run of rows each; else 1, the whole batch
};

using Offset = std::optional<u64>;  // in an arena; none: it is not on this actor

// Where an actor's things of one kind lie. A model has many and most actors few of them, so only those are kept, in
// order of their ids.
template <class I>
class Offsets {
 public:
  Offset operator[](I id) const {
    const auto it = std::lower_bound(all_.begin(), all_.end(), id, before);
    return it != all_.end() && it->first == id ? Offset(it->second) : std::nullopt;
  }
  void put(I id, u64 at) { all_.insert(std::lower_bound(all_.begin(), all_.end(), id, before), {id, at}); }
  bool empty() const { return all_.empty(); }
  void clear() { all_.clear(); }
  bool operator==(const Offsets&) const = default;

 private:
  static bool before(const std::pair<I, u64>& x, I id) { return x.first < id; }
  std::vector<std::pair<I, u64>> all_;
};

struct ActorProgram {
  Code code;
  IdVector<SlotId, Slot> slots;
  PerArena<u64> bytes{};
  // Where the persistent things lie.
  Offsets<ParamId> param_at, frozen_at;  // in the one arena or in the other
  Offsets<AccumulatorId> accumulator_at;
  Offsets<BucketId> bucket_at;
  Offsets<InputId> input_at;
  Offsets<OutputId> output_at;
  Offsets<ScalarId> scalar_at;
  Offsets<StateId> state_at;
  u64 squares_at = 0;
  std::optional<Slot> place_of(ParamId) const;  // none: it is not on this actor
  u64 activation_bound = 0;                     // the most bytes of activations alive at any one time
  std::uint32_t collectives = 0;                // how many are started in a step
};

struct Program {
  std::shared_ptr<const Step> step;
  IdVector<TaskId, std::shared_ptr<const Calls>> calls;  // equal bodies share the pointer
  Schedule schedule;
  IdVector<PieceId, StageId> stage_of;
  IdVector<ActorId, ActorProgram> actors;
  IdVector<RouteId, Route> routes;
  IdVector<TransferId, Transfer> transfers;
  int microbatches = 1, states = 0;
  i64 rows = 1;  // of the batch, per microbatch: random numbers are drawn by global row
  SharedRows shared = {};
  int threads = 1;  // of each rank: all have scratch of their own
  IdVector<MicrobatchId, PipeId> pipe_of;
  IdVector<ParamId, ActorId> owners;  // who updates it; others hold copies
  // Axes that frozen parameters are cut over: ranks of an actor that differ along others only have the same.
  std::vector<std::string> frozen_axes = {};
  // The axes beside the pipeline's. All ranks of an actor run its program, each on its own memory; messages go between
  // ranks of equal coordinates, collectives between ranks of one actor.
  Mesh mesh;

  const Task& task(const Run& r) const { return step->tasks[r.task]; }
  int ranks_per_actor() const { return mesh.ranks(); }
  int ranks() const { return static_cast<int>(actors.size()) * ranks_per_actor(); }
  // The one numbering of all ranks: the pipeline's axis is the major one, then the mesh's axes in their order.
  int rank_of(ActorId actor, int coordinate) const { return actor.value * ranks_per_actor() + coordinate; }
  ActorId actor_of_rank(int rank) const { return ActorId(rank / ranks_per_actor()); }
  ActorId actor_of(PieceId piece, PipeId pipe = PipeId(0)) const { return schedule.actor_of[pipe][stage_of[piece]]; }
  const Row& row(ActorId a) const { return schedule.rows[a]; }
  const Action& action(ActorId a, ActionId i) const { return row(a)[i.value]; }
  // The accumulator that a task's binding means for a microbatch: its own, or the copy of its pipe or level.
  AccumulatorId accumulator(AccumulatorId, MicrobatchId) const;
  i64 first_row(MicrobatchId, const Coordinates&) const;  // in the batch, less where the rank's block starts
  ActorId actor_of_output(OutputId, MicrobatchId) const;  // who makes it; the first actor, of what all make
  std::vector<int> pieces_per_stage() const;
  u64 hash() const;
  std::string str() const;  // instructions per actor
  std::string str(const Instruction&) const;
  std::string memory_str() const;  // what account.h counts, as tables, and what every task holds
};

std::vector<Fault> verify(const Program&);

// What a program is for, and so how much of it is made.
enum class Purpose : std::uint8_t {
  facts,    // to read off what its tasks take: no memory is planned, stages are taken to be apart
  sizes,    // to predict what a step takes and holds: arenas have their sizes, and nothing has a place in them
  picture,  // to look at: all is there, and it is not proved that it can neither deadlock nor race
  run,
};

}  // namespace stretto
