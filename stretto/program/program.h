// What the runtime executes: per actor, the ordered list of instructions, and where every buffer lies.
//
//   Program p = lower(step, calls, schedule, stages);
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
  u64 offset = 0;
};

// Runs task `task` on microbatch `microbatch`; its buffers are slots[args], slots[args + 1], ...
struct Run {
  std::uint32_t task = 0, microbatch = 0, args = 0;
  bool overwrite = true;       // the first of the step for this task: accumulators are written, not added to
  std::uint32_t action = ~0u;  // which action of the actor's row it belongs to; none for prologue and epilogue
};
using Instruction = std::variant<Run>;

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
  int microbatches = 1, states = 0;
  i64 rows = 1;  // of the batch, per microbatch: random numbers are drawn by global row
  u64 hash() const;
  std::string str() const;         // instructions per actor
  std::string memory_str() const;  // bytes per actor and arena, and per task of one microbatch
};

struct LowerOptions {
  int states = 0;               // optimizer states per trainable parameter
  std::vector<bool> trainable;  // per parameter
  i64 rows = 1;                 // of the batch, per microbatch
};
Program lower(std::shared_ptr<const Step>, const Schedule&, std::vector<int> stage_of, const LowerOptions&);

std::vector<Fault> verify(const Program&);

}  // namespace stretto
