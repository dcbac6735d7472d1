// A row of a schedule as turns, with the messages of their actions.
//
//   for (const RowTurn& t : turns_of(schedule, actor, stages, options, false)) works.push_back(turn_work(t.key, ...));
#pragma once
#include <optional>
#include <vector>

#include "stretto/plan/turn_work.h"

namespace stretto {

using StageMessageId = Id<struct StageMessageTag>;  // what one microbatch sends to a neighbouring stage
struct SentTo {
  StageMessageId message;
  ActorId to;
};
struct ActionMessages {
  std::optional<StageMessageId> in = {};
  std::optional<SentTo> out = {};
};
struct RowTurn {
  TurnKey key;
  std::vector<ActionMessages> messages;         // per action of the key
  std::vector<MicrobatchId> microbatches = {};  // likewise
};

std::vector<RowTurn> turns_of(const Schedule&, ActorId, const StagePieces&, const TurnOptions&, bool pairs);
std::size_t message_count(const Schedule&);

}  // namespace stretto
