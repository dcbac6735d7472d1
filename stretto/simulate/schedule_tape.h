// A schedule as a tape for the engine: groups become one node, implied recompute gets its own, edges become messages.
//
//   ScheduleTape t = tape_of(schedule, stage_costs(schedule, options), options);
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/schedule/schedule.h"
#include "stretto/simulate/engine.h"
#include "stretto/simulate/simulate.h"

namespace stretto {

// What a node of the tape plays: rows[actor][position .. position + count), or the recompute implied before position.
struct TapeItem {
  std::uint32_t position = 0;
  std::uint16_t count = 1;
  bool implied = false;  // R that stands in no row
};

struct ScheduleTape {
  Tape tape;
  std::vector<TapeItem> items;        // per node
  std::vector<std::uint8_t> has_r;    // per dense id: an R stands in a row
  std::vector<std::uint32_t> node_f;  // per dense id: the node of F; Player::none when absent
  std::vector<std::uint32_t> node_b;  // ... of I or B
};

// (pipe, stage, microbatch, piece) as one number below pipes x stages x microbatches x pieces.
inline std::size_t dense_id(const Schedule& s, const Action& a) {
  return ((std::size_t(a.pipe) * std::size_t(s.stages) + a.stage) * std::size_t(s.microbatches) + a.microbatch) *
             std::size_t(s.pieces) +
         a.piece;
}

// One entry per stage: the options' own, or their times divided by the chunks per actor. Checked.
std::vector<StageCost> stage_costs(const Schedule&, const SimulateOptions&);

// Refuses what has no meaning: actions out of range, on the wrong actor, twice, or before what they need in their row.
ScheduleTape tape_of(const Schedule&, const std::vector<StageCost>&, const SimulateOptions&);

// Why the actors of `stuck` wait for ever: "actor 1 waits at 2F3 for 1F3 of actor 0, which waits ...".
Error never_ends(const Schedule&, const ScheduleTape&, const std::vector<std::uint32_t>& stuck);

}  // namespace stretto
