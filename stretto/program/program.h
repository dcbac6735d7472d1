// What the runtime executes: per actor, the ordered list of instructions, and where every buffer lies.
//
//   Program p = lower(step, schedule, stage_of, {});     // stage_of: a stage per piece
//
// Memory is planned ahead: nothing is allocated after step 0 starts. An address is an arena and an offset; every actor
// has one arena of each kind.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "stretto/fuse/calls.h"
#include "stretto/ir/layout.h"
#include "stretto/schedule/schedule.h"
#include "stretto/stage/task.h"

namespace stretto {

enum class Arena : std::uint8_t {
  params,
  gradients,    // accumulators
  state,        // of the optimizer
  inputs,       // the step's batch, all microbatches
  results,      // outputs of all microbatches, per-step scalars, squared norms
  activations,  // values between tasks and temporaries, at planned offsets
  scratch,      // kernels' workspace
};
constexpr std::size_t arena_count = 7;
std::string_view name_of(Arena);

struct Slot {
  Arena arena = Arena::activations;
  std::int16_t actor = own;  // whose arena: a value for one other actor alone is written straight into its memory
  u64 offset = 0;
  static constexpr std::int16_t own = -1;
};

// Runs task `task` on microbatch `microbatch`; its buffers are slots[args], slots[args + 1], ...
struct Run {
  std::uint32_t task = 0, microbatch = 0, args = 0;
  bool overwrite = true;       // the first of the step for this task: accumulators are written, not added to
  std::uint32_t action = ~0u;  // which action of the actor's row it belongs to; none for prologue and epilogue
};
// Messages between actors. A route carries the same things again and again, first in first out: one value to one actor,
// or a step's gradients, squared norms or new parameters. The receiver's memory is planned to be free by the time the
// message can be sent at the earliest (order.h), so sending never waits: it copies there, or only tells when the
// sender's kernels have written there themselves.
struct Piece {
  Slot from, to;  // on the sender and on the receiver
  u64 bytes = 0;
};
struct Transfer {
  std::uint32_t route = 0;
  std::vector<Piece> pieces;
  bool direct = false;       // made in the receiver's memory: nothing is copied
  std::uint32_t posted = 0;  // the receiver has at least so many instructions behind it when the message is written
  // Programs for several processes: so many instructions of the sender have the message's memory untouched. A transport
  // that reads it later than at the send waits at the latest there; the receiver is ready by then, so it ends.
  std::uint32_t released = 0;
  // What it carries: one instance of a value, a whole parameter or accumulator, or squared norms of parameters.
  std::uint32_t value = ~0u, microbatch = 0;
  Binding what = {};
  std::vector<std::uint32_t> squares = {};
};
struct Route {
  int source = 0, target = 0;
  u64 bytes = 0;
  std::string name;
};
struct Send {
  std::uint32_t transfer = 0;
};
struct Receive {  // waits for the message
  std::uint32_t transfer = 0;
};
// Accumulators of one stage that are added up over the same ranks, side by side in memory: one sum for all of them. It
// starts when the last microbatch of the stage is done and goes on while the actor works on others.
struct GradientBucket {
  int actor = 0, stage = 0;
  std::vector<std::string> axes;
  DType dtype = f32;
  std::vector<std::uint32_t> accumulators;
  u64 offset = 0, bytes = 0;  // in the gradients' arena
};
struct StartSum {  // never waits
  std::uint32_t bucket = 0;
};
struct AwaitSum {
  std::uint32_t bucket = 0;
};
// The collectives of a task that has nothing else (stage/storage.h): parameters gathered before they are needed,
// gradients reduced and scattered behind the tasks that make them. Its buffers belong to it from Start to Await.
struct Start {  // never waits
  Run run;
  std::uint32_t number = 0;  // of the actor's, from 0 in no order
};
struct Await {
  std::uint32_t number = 0, task = 0;
};
using Instruction = std::variant<Run, Send, Receive, StartSum, AwaitSum, Start, Await>;

// The task that an instruction runs or starts.
inline const Run* task_of(const Instruction& i) {
  if (const Start* s = std::get_if<Start>(&i)) return &s->run;
  return std::get_if<Run>(&i);
}

// How long parameters that are cut over ranks stay gathered.
enum class Reshard : std::uint8_t {
  microbatch,  // while a piece works on one microbatch, or on several without another piece between them
  step,        // from the first use in a step to the last
};
std::string_view name_of(Reshard);

// How the ranks along some axes share the rows of a batch: every microbatch is cut for them, or, for exact training,
// the batch is, so that a rank's rows of all microbatches are neighbours.
struct SharedRows {
  std::vector<std::string> axes = {};
  bool neighbours = false;
  int parts(const Mesh&) const;  // neighbours: how many ranks have a run of rows each; else 1, the whole batch
};

struct ActorProgram {
  std::vector<Instruction> code;
  std::vector<Slot> slots;
  std::array<u64, arena_count> bytes{};
  // Where the persistent things lie; none of a kind that is not on this actor: offset ~0.
  std::vector<u64> param_at, accumulator_at, input_at, output_at, scalar_at;
  std::vector<std::vector<u64>> state_at;  // per parameter, per state of the optimizer
  u64 squares_at = 0;
  u64 activation_bound = 0;  // the most bytes of activations alive at any one time
};

struct Program {
  std::shared_ptr<const Step> step;
  std::vector<std::shared_ptr<const Calls>> calls;  // per task; equal bodies share the pointer
  Schedule schedule;
  std::vector<int> stage_of;  // per piece
  std::vector<ActorProgram> actors;
  std::vector<Route> routes;
  std::vector<Transfer> transfers;
  std::vector<GradientBucket> buckets;
  int microbatches = 1, states = 0;
  i64 rows = 1;  // of the batch, per microbatch: random numbers are drawn by global row
  SharedRows shared = {};
  int gate = -1;  // the scalar that must be finite for the updates of a step to run; -1: they always do
  // Milliseconds after which a kernel should look after messages: long products are cut for it, and the cut decides in
  // which order they are summed. 0: they are whole.
  double poll = 0;
  std::vector<std::uint8_t> pipe_of;  // per microbatch
  std::vector<int> owners;            // per parameter
  // The axes beside the pipeline's. All ranks of an actor run its program, each on its own memory; messages go between
  // ranks of equal coordinates, collectives between ranks of one actor.
  Mesh mesh;
  int ranks_per_actor() const { return mesh.ranks(); }
  int ranks() const { return int(actors.size()) * ranks_per_actor(); }
  // The one numbering of all ranks: the pipeline's axis is the major one, then the mesh's axes in their order.
  int rank_of(int actor, int coordinate) const { return actor * ranks_per_actor() + coordinate; }
  int actor_of(int piece, int pipe = 0) const {
    return schedule.actor_of[std::size_t(pipe)][std::size_t(stage_of[std::size_t(piece)])];
  }
  // Which of the copies of the accumulators takes a microbatch's gradients: its pipe, or its level.
  std::uint32_t copy_of(std::uint32_t microbatch) const;
  i64 first_row(std::uint32_t microbatch,
                const Coordinates&) const;                           // in the batch, less where the rank's block starts
  int owner_of(std::uint32_t param) const { return owners[param]; }  // who updates it; others hold copies
  int actor_of_output(std::uint32_t output, int microbatch) const;   // who makes it; 0 for what everybody makes
  std::vector<int> pieces_per_stage() const;
  u64 hash() const;
  std::string str() const;  // instructions per actor
  std::string str(const Instruction&) const;
  std::string memory_str() const;  // account.h as tables, and what every task holds
};

struct LowerOptions {
  int states = 0;                           // optimizer states per trainable parameter
  i64 rows = 1;                             // of the batch, per microbatch
  SharedRows shared = {};                   // see Program
  int gate = -1;                            // see Program
  Mesh mesh = {};                           // see Program
  u64 bucket_bytes = u64(8) << 20;          // at most, unless one accumulator is larger
  // Ranks share no memory: nothing is made in the receiver's, and what is sent stays for a while.
  bool remote = false;
  Reshard reshard = Reshard::microbatch;
  double poll = 0;                     // see Program
  const Program* params_of = nullptr;  // parameters lie where this program has them: both use one arena
};
Program lower(std::shared_ptr<const Step>, const Schedule&, std::vector<int> stage_of, const LowerOptions&);

std::vector<Fault> verify(const Program&);

}  // namespace stretto
