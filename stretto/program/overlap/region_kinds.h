// What all ways to arrange a program have in common, found once: the regions of its actors, which of them are alike,
// and what depends on what in them.
//
//   RegionKinds kinds(program, false);
//   for (TurnSpan turns : kinds.of(actor, false))
//     if (kinds.has_collectives(actor, turns)) ...
#pragma once
#include <map>
#include <optional>
#include <vector>

#include "stretto/program/overlap/region.h"

namespace stretto {

using KindId = Id<struct KindTag>;  // of an actor's regions that are alike

// A region that comes, with weight gradients that the one before has left to it.
struct NextRegion {
  std::vector<Instruction> left = {};
  TurnSpan turns = {};
};

class RegionKinds {
 public:
  RegionKinds(const Program&, bool apart);  // work_of; the program's code must stay as it is

  const std::vector<TurnSpan>& of(ActorId, bool pairs);  // regions_of
  bool has_collectives(ActorId, TurnSpan);               // can_be_ordered
  // Where a turn receives, and what.
  struct Reception {
    std::size_t at;
    TransferId transfer;  // its number
  };
  const std::vector<Reception>& receptions(ActorId, TurnCodeId);

  // Regions are alike if they are made of turns with equal codes and the same of their numbers are equal.
  KindId kind(ActorId, const NextRegion&);
  struct OfKind {
    bool ordered = false;  // has_collectives
    std::optional<RegionWork> work = {};
  };
  // Of a kind, written out as one of its regions.
  OfKind& of_kind(ActorId, KindId, Region);

 private:
  struct OfTurn {
    bool fits = false, collective = false;
    std::vector<Reception> receptions;
  };
  struct OfActor {
    StartedRuns runs = {};
    std::optional<std::vector<TurnSpan>> turns = {}, pairs = {};
    IdVector<TurnCodeId, std::optional<OfTurn>> codes = {};
    std::map<std::vector<u64>, KindId> kinds = {};
    IdVector<KindId, std::optional<OfKind>> of_kinds = {};
  };
  const OfTurn& of_turn(ActorId, const Turn&);

  const Program& p_;
  const bool apart_;
  CallFacts facts_;
  IdVector<ActorId, OfActor> actors_;
};

// The numbers of a region's turns one after the other, those of what was left first.
TurnNumbers numbers_of(const Code&, const NextRegion&);
// An instruction of it, by its position.
Instruction instruction_at(const Code&, const NextRegion&, RegionAt);
std::vector<Instruction> written_out(const Code&, const NextRegion&);

}  // namespace stretto
