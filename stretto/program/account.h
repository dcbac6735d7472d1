// Where an actor's bytes go: what is alive when its activations need the most memory, and what it keeps between
// actions.
//
//   for (const ActorAccount& a : account(program)) fmt::print("{} of {} bytes are kept\n", a.kept, a.live);
//
// Counted from the finished instructions and their lifetimes. A B action keeps nothing between its I and its W: what is
// made and read within one action is a temporary.
#pragma once
#include <string>
#include <vector>

#include "stretto/program/program.h"

namespace stretto {

struct Holding {
  enum class Kind : std::uint8_t {
    until_i,    // F keeps it; I is the last to read it
    until_w,    // F keeps it; W is the last to read it
    for_w,      // I or R keeps it for W
    for_i,      // R keeps it for I: schedules with an R of their own
    waiting,    // a message before its receive, or a value of a stage on the same actor before its reader
    temporary,  // made and read within one action
    storage,    // parameters that are gathered, gradients on their way to accumulators that are cut
  } kind = Kind::temporary;
  std::optional<StageId> stage = {};  // none: before and after the schedule's actions
  std::vector<MicrobatchId> microbatches = {};
  u64 bytes = 0;
};
std::string_view name_of(Holding::Kind);

struct ActorAccount {
  // At the first moment at which the most bytes are alive. Sizes count rounded up to 64 bytes, as they are planned.
  u64 live = 0;
  std::string moment;  // "1B3, piece 4"
  std::vector<Holding> peak;
  u64 fragmentation = 0;  // planned and free at that moment, because no packing was found that uses it
  u64 scratch = 0;
  // The most that is kept from one action to later ones, and after which action.
  u64 kept = 0;
  std::string kept_after;

  u64 bytes(Holding::Kind) const;  // of `peak`
  u64 beside() const;              // planned activations and scratch beyond `kept`
  u64 planned = 0;                 // the arena of activations
};
ActorAccount account(const Program&, ActorId);
std::vector<ActorAccount> account(const Program&);  // of all

}  // namespace stretto
