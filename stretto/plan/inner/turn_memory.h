// What actors hold beside their states when their turns are played: the lifetimes of all buffers, put together as
// program/memory/lifetimes.h finds them in a program, and packed as program/memory/memory.h packs those.
//
//   TurnMemory memory(schedule, player, player.rows(schedule, way), {.times = 1});
//   const TurnBytes bytes = memory.of(actor);
//   double holds = memory.packed(actor) + states;
#pragma once
#include <map>
#include <vector>

#include "stretto/plan/stage_model.h"
#include "stretto/plan/inner/turn_buffers.h"

namespace stretto {

// At the first moment at which the most is alive.
struct TurnBytes {
  double kept = 0, beside = 0, messages = 0;
  double live() const { return kept + beside + messages; }
};

class TurnMemory {
 public:
  struct Options {
    bool whole = false;  // parameters that were gathered stay whole
    double times = 1;    // so many times as many microbatches are meant
  };
  // All of them outlive it.
  TurnMemory(const Schedule&, const ArrangedPlayer&, const ArrangedRows&, const Options&);

  const TurnBytes& of(ActorId a) const { return live_[a]; }
  double packed(ActorId) const;

 private:
  class Lives;
  struct Timed {
    const TurnBuffers* buffers;
    i64 begin;
  };
  void find_posted();

  const Schedule& s_;
  const ArrangedPlayer& player_;
  const ArrangedRows& rows_;
  const Options o_;
  std::map<const PieceWork*, PieceSlots> known_slots_;
  SlotsOfStages slots_;
  std::map<std::pair<const TurnWork*, const TurnOrder*>, TurnBuffers> known_;
  IdVector<ActorId, std::vector<Timed>> turns_;
  std::vector<i64> posted_;  // per message: from when on it may be written
  IdVector<ActorId, TurnBytes> live_;
};

// Of the fullest actor.
MemoryParts memory_by_turns(const StageModel&, Shape&, ArrangedPlayer&, const std::optional<Arrangement>&, bool whole);

}  // namespace stretto
