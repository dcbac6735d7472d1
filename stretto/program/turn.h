// What is the same in all turns that are alike. A turn is an action with what goes together with it: the W actions
// after it, or the other members of its overlap group.
//
//   TurnCode code;                                             // F of microbatch 0, whatever microbatch that will be
//   code.instructions.push_back(Run{.task = task, .microbatch = MicrobatchId(0)});
//
// Within a turn's code, microbatches, actions, transfers, collectives and slots are numbered from 0 on; a Turn says
// what its numbers stand for.
#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "stretto/program/instruction.h"
#include "stretto/schedule/schedule.h"

namespace stretto {

struct TurnCode {
  std::vector<Instruction> instructions;
  std::uint32_t slots = 0;  // that its runs use
};

// What the numbers in a turn's code stand for.
struct TurnNumbers {
  std::vector<MicrobatchId> microbatches;
  std::vector<ActionId> actions;
  std::vector<TransferId> transfers;
  std::vector<CollectiveId> collectives;
  void add(const TurnNumbers& more) {
    const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
    append(microbatches, more.microbatches), append(actions, more.actions);
    append(transfers, more.transfers), append(collectives, more.collectives);
  }
};

// All that decides about the instructions of a turn, so that turns with equal keys have one code. Microbatches are
// numbered as they appear in the key.
struct ActionKey {
  Phase phase = Phase::F;
  StageId stage = {};  // and so, with the segment, its pieces, and who its results are sent to
  std::uint16_t segment = 0;
  std::uint32_t microbatch = 0;
  bool recomputes = false;           // brings the R of its stage along
  bool completes = false;            // the last one that makes gradients of its stage's weights
  std::vector<char> first;           // of its parts: are they the first of the step?
  std::vector<ValueId> receives;     // which other actors make
  std::vector<StageId> sums_before;  // of which stages sums start right before it
  auto operator<=>(const ActionKey&) const = default;
};
// What the turn before has left: gradients on their way to accumulators, collectives that start with this turn.
struct LeftKey {
  TaskId task;
  std::uint32_t microbatch = 0;
  std::optional<std::int64_t> action = {};  // how far it stands from the turn's first
  bool first = false;                       // of the step
  auto operator<=>(const LeftKey&) const = default;
};
struct MicrobatchKey {
  PipeId pipe = {};
  int level = 0, carries = 0;  // where gradients are added in a tree
  auto operator<=>(const MicrobatchKey&) const = default;
};
struct TurnKey {
  std::vector<ActionKey> actions;
  std::vector<LeftKey> starts;          // their Start stood at the end of the turn before
  std::optional<LeftKey> settles = {};  // a reduce-scatter that is under way
  std::vector<MicrobatchKey> microbatches;
  std::uint32_t sums = 0;  // the number of microbatch 0, with which sums start
  auto operator<=>(const TurnKey&) const = default;
};

}  // namespace stretto
